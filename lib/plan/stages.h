/* The stages of a pipeline together: each has a job and a plan of its own, and messages between them. */
#pragma once

#include "lib/plan/plan.h"

/* Everything that was decided for the whole job, and with it the plan of each stage. Stage s has the pieces s, s + P,
 * ... of the model. The jobs of the stages follow from the whole job and these choices alone
 * (sched/pipeline/stage_job.h makes them), so a rank needs the plan of its own stage and no other. */
typedef struct {
    char *schedule;           /* in which the micro-batches go through the stages */
    uint32_t stages, chunks;  /* P, v */
    uint32_t *first_layer;    /* [P v] of each piece, in the whole job */
    slc_strategy *strategies; /* [units of the whole job] */
    bool *held;               /* [units] under fsdp: gathered once a step, not in each micro-batch and direction */
    uint32_t unit_count;
    bool recompute;   /* all layers that can run their forward again do */
    slc_plan **plans; /* [P] */
} slc_staged_plan;

/* Makes a plan with room for the given numbers of stages, chunks and units: everything is 0, and `schedule` is copied.
 * slc_staged_plan_destroy frees it and the plans in it; NULL is allowed. Errors: MEMORY. */
sluice_status slc_staged_plan_create(const char *schedule, uint32_t stages, uint32_t chunks, uint32_t units,
                                     slc_staged_plan **out);
void slc_staged_plan_destroy(slc_staged_plan *staged);

/* Checks plans of all stages against each other; slc_plan_validate has taken each of them. Both ends of each channel
 * must be there, with messages of one length, between the stages that they name. And no timing may make stages wait for
 * each other, even if a send is over only once its receive has begun: two steps are run through by the items' waits
 * alone. Errors: FORMAT (which channel; or which stages stand still, and at which items), MEMORY. */
sluice_status slc_stages_validate(const slc_job *const *jobs, const slc_plan *const *plans, uint32_t stages);

/* ---- As JSON, version 2 of plans (docs/formats.md) ---- */

/* Makes the job of each stage from the choices: fills jobs [stages], which stay until the reader is done. Errors:
 * ARGUMENT (there is no such pipeline of this job; the error says why), MEMORY. */
typedef sluice_status (*slc_stage_jobs_function)(void *context, const slc_staged_plan *choices, const slc_job **jobs);

/* Writing gives malloc'ed text; `step_s` is for people to read. Reading checks the form and that the plan is for this
 * job, asks for the stages' jobs, takes each stage's plan as slc_plan_from_json does, and then all of them together.
 * `whole` has the ranks and the micro-batches of a stage. Errors: FORMAT with the path in the JSON; those of `make`;
 * MEMORY. */
sluice_status slc_staged_plan_to_json(const slc_job *whole, const slc_job *const *jobs, const slc_staged_plan *staged,
                                      double step_s, char **out);
sluice_status slc_staged_plan_from_json(const slc_job *whole, const char *text, size_t length,
                                        slc_stage_jobs_function make, void *context, slc_staged_plan **out);
/* The job that the plan in a file, of either version, is for, so that a profile can be set to it before the plan is
 * read. */
typedef struct {
    bool staged; /* it is a plan of stages, for `stages` times `replicas` ranks */
    uint32_t stages, replicas, micro_batches;
    bool compressed; /* it is for a compressed phase */
} slc_plan_outline;
/* Reads the outline alone. All of it is 0 if the file cannot be read: reading the plan then says why. */
slc_plan_outline slc_plan_outline_read(const char *path);
