/* The joint plan: strategies, recomputation and schedule together, the fastest of a portfolio in the simulator. Members
 * are every scheduler on every uniform strategy that fits, and the slot model's answer made real (runs of blocks,
 * packed, searched locally), or without a solver the mixtures of
 * `mixed`; so no baseline is ever better than what comes out. */
#ifndef SLC_JOINT_H
#define SLC_JOINT_H

#include "lib/plan/request.h"
#include "sched/scheduler.h"
#include "sched/simulate.h"

typedef struct {
    const slc_job *job;
    const slc_times *times;
    const slc_strategy *strategies; /* [units]; SLC_STRATEGIES: free */
    const uint8_t *recompute;       /* [L] 0 no, 1 yes, 2 free; NULL: no layer */
    uint64_t limit;                 /* bytes of the arena */
    slc_updates updates;
    double time_limit_s;      /* of everything; 0: by the number of layers: 0.9 up to 48, 4.5 from 126 on; twice that
                               where recomputation is free */
    bool quick;               /* baselines and rounding only: a valid plan in a tenth of a second */
    uint32_t tries;           /* of the local search at most; 0: as the time limit allows */
    const slc_cancel *cancel; /* NULL: none */
    bool portfolio; /* without the slot model, as in a build that has no solver; the plan's schedule says so */
} slc_joint_request;

typedef struct {
    slc_plan *plan; /* the receiver destroys it; validated */
    slc_forecast forecast;
    char member[48]; /* of the portfolio: "ilp", "greedy, all sdp" */
    double bound_s;  /* of the slot model: its windows and ties; 0: not known */
    double model_s;  /* the slot model's objective for its answer; 0: it found none */
    double first_s;  /* until the first valid plan */
    double solver_s, total_s;
    char note[200]; /* what went wrong on the way and was survived; else empty */
} slc_joint_answer;

/* Errors: BUDGET (no member fits; *least, if not NULL, is the smallest arena seen), MEMORY, INTERRUPTED (cancelled). */
sluice_status slc_joint_plan(const slc_joint_request *request, slc_joint_answer *answer, uint64_t *least);

#endif
