/* How the engine asks for a plan, and which units to fuse. It knows no scheduler: the umbrella hands it functions. */
#ifndef SLC_PLAN_REQUEST_H
#define SLC_PLAN_REQUEST_H

#include "lib/plan/cancel.h"
#include "lib/plan/profile.h"

/* The default schedule: strategies and order are chosen together, by an integer program where there is a solver. */
#if defined(SLUICE_WITHOUT_GLPK)
#define SLC_SCHEDULE_DEFAULT "portfolio"
#else
#define SLC_SCHEDULE_DEFAULT "ilp"
#endif

/* Where updates run. Those of onebit units always stay with the communication thread. AUTO: on the compute lane where
 * the simulator finds the step shorter for it, with the schedules "ilp" and "portfolio" and times that know what an
 * update takes there; else on the communication thread. COMPUTE: all on the compute lane. BOTH: half of the elements on
 * each, so that both are measured. */
typedef enum { SLC_UPDATES_AUTO, SLC_UPDATES_COMMUNICATION, SLC_UPDATES_COMPUTE, SLC_UPDATES_BOTH } slc_updates;

typedef struct {
    const char *strategy;       /* for all units, as the user wrote it. onebit, here or forced, means dp where the job
                                   is not in its compressed phase; where it is, free units may become onebit */
    const slc_strategy *forced; /* of each unit: a strategy, or SLC_STRATEGIES for "as `strategy` says" */
    const char *schedule;
    const uint8_t *recompute; /* of each layer: 0 no, 1 yes, 2 the planner's choice; NULL: no layer */
    slc_updates updates;
    const slc_times *times;   /* NULL: estimated from sizes */
    double time_limit_s;      /* of a schedule that searches; 0: its own */
    uint64_t budget_bytes;    /* 0: none */
    double budget_of_dp;      /* > 0: instead, a fraction of what dp with the serial schedule needs */
    const slc_cancel *cancel; /* NULL: planning ends when it is done */
} slc_plan_request;

typedef struct {
    slc_plan *plan;             /* the receiver destroys it */
    uint64_t budget_bytes;      /* in bytes; 0: none was asked for */
    uint64_t dp_bytes;          /* what dp with the serial schedule needs, reserved bytes included */
    slc_plan_forecast forecast; /* by the simulator, with the request's times or those estimated; no `why` */
    char member[48];            /* of the portfolio, where the schedule searches one */
    char note[200];             /* what went wrong on the way and was survived; else empty */
} slc_plan_answer;

/* Makes a plan. Deterministic: the same job and request give the same plan on every rank.
 * Errors: ARGUMENT (a strategy or schedule that is not there), FORMAT (a file of strategies: says where), BUDGET (what
 * this needs, the smallest budget that works and with what, the largest consumers), INTERRUPTED (cancelled). `answer`
 * then holds no plan. */
typedef sluice_status (*slc_plan_function)(void *context, const slc_job *job, const slc_plan_request *request,
                                           slc_plan_answer *answer);

/* The value of `bytes` that fuses as far as it pays by the cost model. */
#define SLC_FUSE_AUTO UINT64_MAX

typedef struct {
    const slc_plan_request *plan; /* what will be asked for when units are fused; times as there */
    const bool *alone;            /* of each unit: fused with no other; NULL: none */
    uint64_t bytes;               /* of a fused unit's values, at most; SLC_FUSE_AUTO */
} slc_fuse_request;

/* Decides which units become one. In the job each unit has the parameters of one layer. group[u] becomes the first unit
 * of u's group, u itself where it stays as it is. A group's units are trainable, of one type, one length of blocks and
 * one strategy (free, or the same), used by one layer each; those layers follow each other, and together they are at
 * most one base block. The plan never needs more memory than its budget allows. Where the request cannot be planned at
 * all (a strategy that does not exist) nothing is fused, and the plan that is asked for next says why. Deterministic.
 * Errors: MEMORY, INTERRUPTED (as plan->cancel says). */
typedef sluice_status (*slc_fuse_function)(void *context, const slc_job *job, const slc_fuse_request *request,
                                           uint32_t *group);

typedef struct {
    slc_plan_function plan;
    slc_fuse_function fuse; /* NULL: nothing is ever fused */
    /* Does this schedule place communication by how long things take? Then the engine starts with a plan of
     * simple_schedule, measures, and asks again with times. NULL: no schedule does. */
    bool (*wants_times)(void *context, const char *schedule);
    const char *simple_schedule; /* NULL: the plan to start with has the schedule that was asked for */
    void *context;               /* of all these functions */
} slc_planner;

#endif
