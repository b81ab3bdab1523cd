/* How the engine asks for a plan: it knows no scheduler, the umbrella hands it a function of this type. */
#ifndef SLC_PLAN_REQUEST_H
#define SLC_PLAN_REQUEST_H

#include "lib/plan/profile.h"

typedef struct {
    const char *strategy;       /* for all units, as the user wrote it */
    const slc_strategy *forced; /* of each unit: a strategy, or SLC_STRATEGIES for "as `strategy` says" */
    const char *schedule;
    const uint8_t *recompute; /* of each layer: 0 no, 1 yes, 2 the planner's choice; NULL: no layer */
    const slc_times *times;   /* NULL: estimated from sizes */
    double time_limit_s;      /* of a schedule that searches; 0: its own */
    uint64_t budget_bytes;    /* 0: none */
    double budget_of_dp;      /* > 0: instead, a fraction of what dp with the serial schedule needs */
} slc_plan_request;

typedef struct {
    slc_plan *plan;             /* the receiver destroys it */
    uint64_t budget_bytes;      /* in bytes; 0: none was asked for */
    uint64_t dp_bytes;          /* what dp with the serial schedule needs, reserved bytes included */
    slc_plan_forecast forecast; /* by the simulator, with the request's times or those estimated; no `why` */
    char member[48];            /* of the portfolio, where the schedule searches one */
    char note[200];             /* what went wrong on the way and was survived; else empty */
} slc_plan_answer;

/* Deterministic: the same job and request give the same plan on every rank.
 * Errors: ARGUMENT (a strategy or schedule that is not there), FORMAT (a file of strategies: says where), BUDGET (what
 * this needs, the smallest budget that works and with what, the largest consumers). `answer` then holds no plan. */
typedef sluice_status (*slc_planner)(const slc_job *job, const slc_plan_request *request, slc_plan_answer *answer);

#endif
