/* The plans from which a search may still reach the fastest: one for each set of choices (strategies, recomputation),
 * because the search over orders changes none of these. Orders are of two kinds, made by the slot model or by rules. A
 * search may gain more from one kind than from the other, so if a list has no slack it may keep the fastest of each.
 * Private to sched. */
#pragma once

#include "sched/scheduler.h"
#include "sched/simulate/simulate.h"

enum { SLC_SHORTLIST = 16 };

typedef struct {
    slc_strategy *strategies; /* [units] */
    bool *recompute;          /* [L] */
    const slc_scheduler *scheduler;
    slc_plan *plan;
    slc_forecast forecast;
    bool of_model;   /* the slot model made the order */
    double bound_s;  /* lower bound of all plans with these choices; 0: not known */
    char member[48]; /* name in the joint search */
} slc_candidate;

typedef struct {
    const slc_job *job;
    double slack;        /* a step may be this many times as long as the fastest; 1: only the fastest plan is kept, */
    double second_slack; /* but with this above 1 also the fastest of the other kind if its step is at most this many
                            times as long. 0: no */
    slc_candidate list[SLC_SHORTLIST]; /* the fastest first */
    uint32_t count;
} slc_shortlist;

/* Seconds that the step of a plan of this kind with these choices must be below to be taken; 0: any is taken. */
double slc_shortlist_below_s(const slc_shortlist *list, const slc_strategy *strategies, const bool *recompute,
                             bool of_model);

/* Takes over plan, forecast, scheduler, kind and member of `candidate`; its choices are copied. Plans that are too slow
 * compared with it leave the list. The list owns the plan, or the plan is destroyed with the error. Errors: MEMORY. */
sluice_status slc_shortlist_take(slc_shortlist *list, const slc_candidate *candidate);

/* Sorts the list again, the fastest first. */
void slc_shortlist_sort(slc_shortlist *list);
void slc_shortlist_fini(slc_shortlist *list);
