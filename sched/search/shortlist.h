/* The plans from which a search may still reach the fastest: one for each set of choices (strategies, recomputation),
 * as the search over orders changes none of them. Private to sched. */
#ifndef SLC_SHORTLIST_H
#define SLC_SHORTLIST_H

#include "sched/scheduler.h"
#include "sched/simulate/simulate.h"

enum { SLC_SHORTLIST = 16 };

typedef struct {
    slc_strategy *strategies; /* [units] */
    bool *recompute;          /* [L] */
    const slc_scheduler *scheduler;
    slc_plan *plan;
    slc_forecast forecast;
    double bound_s;  /* no plan of these choices is below; 0: not known */
    char member[48]; /* of the portfolio */
} slc_candidate;

typedef struct {
    const slc_job *job;
    double slack; /* how many times as long as the fastest a step may take; 1: only the fastest is kept */
    slc_candidate list[SLC_SHORTLIST]; /* the fastest first */
    uint32_t count;
} slc_shortlist;

/* What a plan of these choices must be faster than to be taken; 0: any is. */
double slc_shortlist_below_s(const slc_shortlist *list, const slc_strategy *strategies, const bool *recompute);

/* Takes over plan, forecast, scheduler and member of `candidate` (of which choices are copied); what is too slow beside
 * it goes. The plan is the list's, or destroyed with the error: MEMORY. */
sluice_status slc_shortlist_take(slc_shortlist *list, const slc_candidate *candidate);

/* Puts the fastest first again. */
void slc_shortlist_sort(slc_shortlist *list);
void slc_shortlist_fini(slc_shortlist *list);

#endif
