/* The engine asks for a plan, and for the units to fuse, through these functions. It knows no scheduler: the umbrella
 * hands it the functions. */
#pragma once

#include "lib/base/error_line.h"
#include "lib/plan/effort/cancel.h"
#include "lib/plan/profile.h"

/* The schedule if none is named. It chooses strategies and order together: "ilp" if the build has a solver for its
 * integer program, else "portfolio". */
extern const char slc_schedule_default[];

/* The lane on which updates run; those of onebit units always stay on the communication thread. AUTO: on the compute
 * lane if the simulator finds that the step becomes shorter, otherwise on the communication thread. Only the schedules
 * "ilp" and "portfolio" ask the simulator, and only if the times know what an update takes on the compute lane.
 * COMPUTE: all of them on the compute lane. BOTH: half of the elements there, so that both lanes are measured. */
typedef enum { SLC_UPDATES_AUTO, SLC_UPDATES_COMMUNICATION, SLC_UPDATES_COMPUTE, SLC_UPDATES_BOTH } slc_updates;

typedef struct {
    const char *strategy;       /* for all units, as the user wrote it. onebit, here or forced, means dp outside of the
                                   job's compressed phase; inside it, free units may become onebit */
    const slc_strategy *forced; /* [units] a strategy, or SLC_STRATEGIES for "as `strategy` says" */
    const char *schedule;
    const uint8_t *recompute; /* [L] 0 no, 1 yes, 2 the planner's choice; NULL: no layer recomputes */
    slc_updates updates;
    const slc_times *times; /* NULL: the planner estimates them from sizes */
    double effort_s;        /* nominal seconds of work (effort/work.h) of a schedule that searches; 0: its default */
    double time_limit_s;    /* seconds after which it takes the best plan that it has; 0: none. Where that cuts, the
                               plan depends on the machine, and the answer says so */
    uint64_t steps_left;    /* steps that will run with the plan: planning ends when they cannot win back what it costs;
                               0: planning does not ask */
    uint64_t budget_bytes;  /* 0: none */
    double budget_of_dp;    /* > 0: a budget as a fraction of what dp with the serial schedule needs */
    const slc_cancel *cancel; /* NULL: nobody cancels */
    const char *kept;         /* the file of a plan that is taken instead of making one; `strategy`, `schedule` and
                                 `times` only serve to find out what dp needs. NULL: a plan is made */
} slc_plan_request;

typedef struct {
    slc_plan *plan;             /* the receiver destroys it */
    uint64_t budget_bytes;      /* in bytes; 0: none was asked for */
    uint64_t dp_bytes;          /* what dp with the serial schedule needs, reserved bytes included */
    slc_plan_forecast forecast; /* by the simulator, with the request's times or those estimated; no `why` */
    char member[48];            /* name in the joint search, if the schedule is of it */
    char note[SLC_ERROR_BYTES]; /* problems on the way that planning survived; else empty */
} slc_plan_answer;

/* Makes a plan. It is deterministic: the same job and request give the same plan on every rank.
 * Errors: ARGUMENT (there is no such strategy or schedule), FORMAT (a file of strategies; the error says where), BUDGET
 * (the error says what this needs, the smallest budget that works and with what, and the largest consumers),
 * INTERRUPTED (cancelled). With `kept`: PATH, IO, FORMAT (it is no plan, or of another job), ARGUMENT (it does
 * otherwise than `forced`, `recompute` or `updates` say), BUDGET (it needs more). After an error `answer` holds no
 * plan. */
typedef sluice_status (*slc_plan_function)(void *context, const slc_job *job, const slc_plan_request *request,
                                           slc_plan_answer *answer);

/* A value of slc_fuse_request.bytes: units are fused as far as it pays by the cost model. */
#define SLC_FUSE_AUTO UINT64_MAX

typedef struct {
    const slc_plan_request *plan; /* the request that will follow when units are fused; its times count here too */
    const bool *alone;            /* [units] the unit is fused with no other; NULL: every unit may be */
    uint64_t bytes;               /* most bytes of a fused unit's values, or SLC_FUSE_AUTO */
} slc_fuse_request;

/* Says which units of a job become one, in a job whose units each belong to one layer: group[u] is the first unit of
 * u's group, u itself if it stays as it is. A group's units are trainable, have one type, one length of blocks and one
 * strategy (all are free, or all have the same), are used by one layer each, those layers follow each other, and
 * together they are at most one base block. Fusing never takes more memory than the plan's budget allows. If the
 * request cannot be planned at all (there is no such strategy), nothing is fused, and the plan that is asked for next
 * says why. For a kept plan the groups are those of its units, whatever `bytes` says. It is deterministic. Errors:
 * MEMORY, INTERRUPTED (as plan->cancel says). */
typedef sluice_status (*slc_fuse_function)(void *context, const slc_job *job, const slc_fuse_request *request,
                                           uint32_t *group);

/* Measured times of a pipeline's job, which stand in the place of those that sizes suggest. */
typedef struct {
    double *slot_s;              /* [2L], as slc_times.slot_s */
    double update_s_per_element; /* on the communication thread; 0: not measured */
    slc_link_line channel;       /* of messages, reductions and gathers; bytes_per_s 0: not measured */
} slc_stages_times;

/* A pipeline that is to run: N = stages * R ranks, of which a job of R ranks is given. */
typedef struct {
    uint32_t stages, chunks; /* chunks: of each stage; 0: as the schedule has them */
    const char *schedule;    /* "gpipe", "1f1b", "interleaved" */
    const char *cuts;        /* "auto"; or the first layer of each piece but the first, with commas */
    const char *strategy;    /* of all units, as the user wrote it; "auto": unit by unit. onebit means dp outside of
                                the job's compressed phase */
    uint8_t recompute;       /* 0 no layer; 1 all that can; 2 all that can, if nothing fits without */
    uint64_t budget_bytes;   /* of a rank; 0: none */
    const slc_stages_times *times; /* NULL: those that sizes suggest */
    const char *kept; /* text of a plan of stages, which is taken instead of planning: it says all the rest but `stages`
                         and the budget, which it must agree with. NULL: a plan is made */
    const struct slc_stages_cut *as; /* how the job has been cut in another phase, whose first layers and recomputation
                                        this one is to have; NULL: there is none */
} slc_stages_request;

enum { SLC_PIECES_MAX = 1024 };

/* A stage's share of a step, as simulated. */
typedef struct {
    double compute_s, idle_s, exposed_s; /* slots; waiting for other stages; for the stage's own updates and gathers */
    double transfer_s;                   /* its way out is busy */
} slc_stage_step;

/* The cuts between pieces of the model, and what follows from them for all stages. */
typedef struct slc_stages_cut {
    char schedule[24];
    uint32_t chunks;                      /* of each stage; pieces: stages * chunks */
    uint32_t first_layer[SLC_PIECES_MAX]; /* of each piece; piece c * stages + s is chunk c of stage s */
    bool recompute;
    double step_s;            /* simulated, of all stages, with the request's times */
    bool timed;               /* these were measured */
    slc_strategy *strategies; /* [units of the job]; this and the next two belong to whoever has the cut */
    bool *held;               /* [units] under fsdp: gathered once a step */
    slc_stage_step *steps;    /* [stages] of that step */
    uint64_t needs_bytes;     /* after BUDGET: the smallest budget that was found to do */
} slc_stages_cut;

/* Makes room for the strategies of `units` units and the steps of `stages` stages; slc_stages_cut_fini frees it, after
 * an error too. Errors: MEMORY. */
sluice_status slc_stages_cut_make_room(slc_stages_cut *cut, uint32_t units, uint32_t stages);
void slc_stages_cut_fini(slc_stages_cut *cut);

/* The job and the plan of a rank of one stage. */
typedef struct {
    slc_job job;      /* of the stage, with the whole job's names; belongs to `owner` */
    slc_plan *plan;   /* the receiver destroys it */
    uint32_t *layers; /* [job.layer_count] number in the whole job; so too the next two */
    uint32_t *units;
    uint32_t *activations; /* SLC_NONE: the whole job has none such */
    uint64_t fingerprint;  /* of the plans of all stages */
    void *owner;
} slc_stage_answer;

typedef struct {
    slc_plan_function plan;
    slc_fuse_function fuse; /* NULL: nothing is ever fused */
    /* Returns true if this schedule places communication by how long things take. Then the engine starts with a plan of
     * simple_schedule, measures, and asks again with times. NULL: no schedule does. */
    bool (*wants_times)(void *context, const char *schedule);
    const char *simple_schedule; /* NULL: the plan to start with has the schedule that was asked for */
    /* Predicts a step of a plan from times. NULL: nothing is predicted anew. Errors: MEMORY. */
    sluice_status (*forecast)(void *context, const slc_job *job, const slc_times *times, const slc_plan *plan,
                              double *step_s);
    /* Cuts a job into stages that fit the budget. Deterministic. NULL: pipelines are refused. Errors: ARGUMENT (there
     * is no such schedule, strategy or layer, or the schedule does not run; shapes and cuts that do not work: the error
     * names some that do), BUDGET, MEMORY; with `kept` those of reading it, FORMAT. */
    sluice_status (*cut)(void *context, const slc_job *job, const slc_stages_request *request, slc_stages_cut *out);
    /* Makes the job and the plan of stage `stage`, from cuts that `cut` has made. All stages are planned, and checked
     * together. The receiver calls free_stage once the job is no longer used, not after an error. Errors: MEMORY;
     * FORMAT (a defect of ours). */
    sluice_status (*stage)(void *context, const slc_job *job, const slc_stages_request *request,
                           const slc_stages_cut *cut, uint32_t stage, slc_stage_answer *out);
    void (*free_stage)(void *context, slc_stage_answer *answer);
    void *context; /* of all these functions */
} slc_planner;
