/* A pipeline planned on paper: where the layers are cut, which strategy each unit has, what each stage needs, how long
 * a step takes. The programmes of partition.h propose cuts, the packer says whether they fit, the simulator which of
 * them is fastest. */
#pragma once

#include "lib/plan/stages.h"
#include "sched/pipeline/costs.h"
#include "sched/pipeline/partition/partition.h"
#include "sched/pipeline/stage_job.h"

typedef struct {
    const slc_profile *profile; /* its world is R, its micro-batches are M */
    const slc_pipeline_schedule *schedule;
    slc_pipeline_shape shape;
    const uint32_t *first_layer; /* [pieces]; NULL: the planner cuts */
    /* The strategy of all units. fsdp: a unit is gathered once a step where memory allows it, else in each micro-batch
     * and direction. SLC_STRATEGIES: the planner's choice, unit by unit: where stages have replicas sdp, fsdp in each
     * micro-batch where sdp does not fit, and onebit where it fits, the profile is of a compressed phase and the step
     * becomes shorter; else dp.
     */
    slc_strategy strategy;
    uint8_t recompute;     /* 0 no layer; 1 all that can; 2 all that can, if nothing fits without */
    uint64_t budget_bytes; /* of a rank; 0: none */
} slc_pipeline_request;

typedef struct {
    uint32_t *first_layer; /* [pieces] */
    uint64_t *bytes;       /* [stages] of a rank, as packed, with what the binary reserves */
    uint64_t *older_bytes; /* [stages] of them: values before the latest */
    bool recompute;
    slc_stage_job *stages;        /* [stages] their jobs, which are in */
    const slc_job **jobs;         /* [stages] too, and */
    slc_staged_plan *staged;      /* all choices and the plan of each stage: what an engine runs and a file holds */
    slc_pipeline_program program; /* as many steps as it takes to be in the steady state */
    slc_pipeline_costs costs;
    slc_pipeline_forecast forecast;
    double bound_s;  /* no cuts of this profile make a step of this schedule shorter */
    uint32_t rounds; /* how often the programmes were asked again with the times of simulated stages */
    /* Stages whose replicas need not be equal, which PipeDream's programme finds for all ranks if the schedule does
     * not flush, and their step. No such stages are planned or run. */
    slc_steady_stage *unequal;
    uint32_t unequal_count; /* 0: nothing fits, or the schedule flushes */
    double unequal_s;
    uint64_t needs_bytes; /* after BUDGET: the smallest budget that was found to do */
} slc_pipeline_plan;

/* Plans. The caller frees the plan by slc_pipeline_plan_fini, after an error too. Deterministic. Errors: ARGUMENT (a
 * shape that the schedule does not have, more pieces than layers, cuts that are not ascending or part a unit's layers,
 * gradients that are reduced in each micro-batch, a strategy that stages of this schedule do not have: the error names
 * values that work); BUDGET (no cuts fit: the smallest budget that does, and the stage that needs it); MEMORY. */
sluice_status slc_pipeline_plan_make(const slc_pipeline_request *request, slc_pipeline_plan *out);
void slc_pipeline_plan_fini(slc_pipeline_plan *plan);

/* Writes the plan as JSON of version 2. Errors: those of writing. */
sluice_status slc_pipeline_plan_write(const slc_pipeline_request *request, const slc_pipeline_plan *plan,
                                      const char *path);
sluice_status slc_pipeline_plan_text(const slc_pipeline_request *request, const slc_pipeline_plan *plan, char **out);

/* Reads a plan for the profile, whose world and micro-batches must be those of a stage, and simulates it. The request
 * is filled as if it had asked for this plan; its first_layer is the plan's. Errors: those of reading a file; FORMAT; a
 * plan that slc_pipeline_plan_make would refuse. */
sluice_status slc_pipeline_plan_read(const slc_profile *profile, const char *path, slc_pipeline_request *request,
                                     slc_pipeline_plan *out);
sluice_status slc_pipeline_plan_from_text(const slc_profile *profile, const char *text, size_t length,
                                          slc_pipeline_request *request, slc_pipeline_plan *out);

/* Reads cuts: the names of the first layers of all pieces but the first, with commas. Fills first_layer [pieces].
 * Errors: ARGUMENT (too many or too few, no such layer, not ascending; the error names layers that work, and the caller
 * says where the cuts come from). */
sluice_status slc_pipeline_cuts_read(const slc_job *job, const char *text, uint32_t pieces, uint32_t *first_layer);
