/* The request and the answer of a joint search; the search for the least memory reads the request too. */
#pragma once

#include "lib/plan/request.h"
#include "sched/scheduler.h"
#include "sched/simulate/forecast.h"

/* The smallest arena of any plan, as slc_least_memory finds it; whoever asks owns the arrays. */
typedef struct {
    slc_strategy *strategies; /* [units] */
    bool *recompute;          /* [L] */
    uint64_t arena_bytes;     /* 0: it was not asked for */
    bool cut;                 /* the effort ended the search, so less may do */
} slc_smallest_arena;

typedef struct {
    const slc_job *job;
    const slc_times *times;
    const slc_times *mean_times;    /* what the slot model reads where steps draw their layers; NULL: `times` */
    const slc_plan *start;          /* a plan of these choices whose order is tried too; NULL: none */
    const slc_strategy *strategies; /* [units]; SLC_STRATEGIES: free */
    const uint8_t *recompute;       /* [L] 0 no, 1 yes, 2 free; NULL: no layer */
    uint64_t limit;                 /* bytes that the arena may have */
    slc_updates updates;
    double effort_s;     /* nominal seconds of work for the whole planning; 0: 0.9 up to 48 layers, rising to 4.5
                            from 126 layers on, twice that if recomputation is free */
    uint64_t steps_left; /* steps that will run with the plan: planning ends when they cannot win back what it costs;
                            0: it does not ask */
    slc_work *work;      /* counts the work, and may have a ceiling; NULL: nobody asks */
    bool quick;          /* only baselines and rounding: a valid plan in a tenth of a second */
    uint32_t tries;      /* most tries of the local search; 0: as many as the effort allows */
    const slc_cancel *cancel;  /* NULL: none */
    slc_smallest_arena *least; /* what the search for the least memory finds, if it comes to that; NULL: nobody asks */
    bool portfolio; /* without the slot model, as in a build that has no solver; the plan's schedule says so */
} slc_joint_request;

typedef struct {
    slc_plan *plan; /* validated; the receiver destroys it */
    slc_forecast forecast;
    char member[48]; /* name in the joint search: "ilp", "greedy, all sdp" */
    double bound_s;  /* lower bound of the step of any valid plan within the limit; 0: not known */
    double model_s;  /* the slot model's objective for its answer; 0: it found none */
    double first_s;  /* seconds until the first valid plan */
    double solver_s, total_s;
    double effort_s;            /* nominal seconds that were spent */
    slc_planning_end ended;     /* why planning ended */
    char note[SLC_ERROR_BYTES]; /* problems on the way that planning survived; else empty */
} slc_joint_answer;

/* The times that the slot model reads. */
static inline const slc_times *slc_joint_mean_times(const slc_joint_request *request)
{
    return request->mean_times ? request->mean_times : request->times;
}

/* The input of a scheduler for a choice of strategies and recomputation. */
static inline slc_scheduling slc_joint_scheduling(const slc_joint_request *request, const slc_strategy *strategies,
                                                  const bool *recompute)
{
    return (slc_scheduling){.job = request->job,
                            .strategies = strategies,
                            .recompute = recompute,
                            .times = request->times,
                            .limit = request->limit,
                            .cancel = request->cancel,
                            .work = request->work};
}
