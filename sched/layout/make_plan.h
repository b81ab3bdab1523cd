/* From an order to a plan: buffers, lifetimes, packing and tickets. Every scheduler's order goes this way. */
#pragma once

#include "sched/scheduler.h"
#include "sched/simulate/forecast.h"

/* Makes, packs and validates a plan. The caller destroys it. Errors: MEMORY; FORMAT (a defect of ours). */
sluice_status slc_plan_make(const slc_scheduling *in, const slc_scheduler *scheduler, slc_plan **out);

/* Makes a plan from a training order of the caller, who keeps owning it; NULL: `scheduler` orders the training too. It
 * orders the evaluation and gives the plan its name. Errors as slc_plan_make. */
sluice_status slc_plan_from_order(const slc_scheduling *in, const slc_order *train, const slc_scheduler *scheduler,
                                  slc_plan **out);

typedef struct {
    uint32_t tries;       /* more orders of packing than usual, until the plan fits; 0: the packing of slc_plan_make */
    double at_most_s;     /* longest step of interest in seconds; an order whose step is longer even if no buffers share
                             memory is given up early. 0: every step is of interest */
    bool in_time;         /* if the plan waits for memory, it is packed again so that it waits less, if that fits */
    const slc_plan *like; /* a plan of the same choices, limit and scheduler, whose buffers and evaluation are taken
                             over; NULL: there is none */
    const uint64_t *places; /* [buffers] offsets that such a plan has: they are tried before anything is packed, and a
                               few buffers that overlap there move to gaps between the others; in->times and a forecast
                               must be there. NULL: none are known */
    bool only_places;       /* nothing is packed if that gives no plan, or one that is too slow */
} slc_trying;

/* Makes a plan for a search that makes many; the plan is not validated yet. *out is NULL if the order is illegal, of no
 * interest, or needs an arena above in->limit. *arena_bytes is the arena's size or a lower bound of it; UINT64_MAX: not
 * known. *forecast becomes the plan's, for which in->times must be there; NULL: nobody asks. Errors: MEMORY. */
sluice_status slc_plan_try(const slc_scheduling *in, const slc_order *train, const slc_scheduler *scheduler,
                           const slc_trying *trying, slc_plan **out, uint64_t *arena_bytes, slc_forecast *forecast);

/* Makes only the items, lifetimes and packing of a plan, even of one that is too large. *out is NULL if the order is
 * illegal. Errors: MEMORY. */
sluice_status slc_plan_lay_out(const slc_scheduling *in, const slc_order *train, const slc_scheduler *scheduler,
                               uint32_t tries, slc_plan **out);

/* Does what slc_plan_lay_out does, from `like`, a plan as in slc_trying. Its buffers stay where they are, except for a
 * few that overlap or end above in->limit; these move. *out is NULL also if more than a few would have to move.
 * lower_bound is 0. Errors: MEMORY. */
sluice_status slc_plan_lay_out_like(const slc_scheduling *in, const slc_order *train, const slc_scheduler *scheduler,
                                    const slc_plan *like, slc_plan **out);

/* Measures the arena that slc_plan_make's plan would have, without making the rest. A figure above `limit` may be only
 * a lower bound, for which nothing is packed. Errors: MEMORY; FORMAT (a defect of ours). */
sluice_status slc_plan_measure(const slc_scheduling *in, const slc_scheduler *scheduler, uint64_t limit,
                               uint64_t *arena_bytes);
