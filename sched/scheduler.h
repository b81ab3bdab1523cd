/* Schedulers: each turns a job and its strategies into one total order of slots and operations. What follows from the
 * order (lifetimes, packing, tickets) is the same for all and is worked out by slc_plan_make. */
#ifndef SLC_SCHEDULER_H
#define SLC_SCHEDULER_H

#include "lib/plan/cancel.h"
#include "lib/plan/times.h"

#include <stddef.h>

/* An order under construction. */
typedef struct {
    slc_item *items;
    uint32_t count, capacity;
    bool failed; /* out of memory, or cancelled: looked at once, at the end */
} slc_order;

/* What a scheduler works from. */
typedef struct {
    const slc_job *job;
    const slc_strategy *strategies; /* [units] */
    const bool *recompute;          /* [L]; NULL: no layer recomputes */
    const slc_times *times;         /* NULL: of no use to this scheduler's caller; those that need them estimate */
    uint64_t limit;                 /* bytes that the arena may have: a scheduler that hoists stays below */
    uint64_t seed;                  /* of `random` */
    const slc_cancel *cancel;       /* NULL, or then whatever makes a plan of this may return INTERRUPTED */
} slc_scheduling;

typedef struct {
    const char *name; /* as the user writes it */
    const char *doc;
    bool slots_wait_for_all; /* no overlap at all */
    void (*train)(const slc_scheduling *in, slc_order *order);
    void (*evaluate)(const slc_scheduling *in, slc_order *order);
} slc_scheduler;

extern const slc_scheduler slc_scheduler_serial, slc_scheduler_one_ahead, slc_scheduler_bucketed,
    slc_scheduler_priority, slc_scheduler_greedy, slc_scheduler_random, slc_scheduler_ilp, slc_scheduler_portfolio;

/* Of the two that choose strategies too (joint.h)? ilp needs a solver (slc_slot_model_solver). */
bool slc_scheduler_is_joint(const slc_scheduler *scheduler);

const slc_scheduler *slc_scheduler_find(const char *name); /* NULL: none of that name */
const char *slc_scheduler_names(void);                     /* "serial, one_ahead": for messages */
const slc_scheduler *slc_scheduler_at(size_t index);       /* all there are, portfolio, which has no order of its own,
                                                              left out; NULL behind the last */

/* Makes, packs and validates a plan. The caller destroys it. Errors: MEMORY; FORMAT (a defect of ours). */
sluice_status slc_plan_make(const slc_scheduling *in, const slc_scheduler *scheduler, slc_plan **out);

/* The same from a training order that the caller made (and goes on owning); evaluation as `scheduler` does it, whose
 * name the plan bears. */
sluice_status slc_plan_from_order(const slc_scheduling *in, const slc_order *train, const slc_scheduler *scheduler,
                                  slc_plan **out);

typedef struct {
    uint32_t tries; /* more orders of packing than usual, ending as soon as it fits; 0: packed exactly as slc_plan_make
                       does */
    double at_most_s; /* of no interest when its step takes longer even with memory for all; 0: always of interest */
} slc_trying;

/* The same for a search that makes many: NULL in *out when the order is illegal, of no interest, or its arena is above
 * in->limit; not validated yet. *arena_bytes: what it takes, or a lower bound of that; UINT64_MAX: not known.
 * Errors: MEMORY. */
sluice_status slc_plan_try(const slc_scheduling *in, const slc_order *train, const slc_scheduler *scheduler,
                           const slc_trying *trying, slc_plan **out, uint64_t *arena_bytes);

/* Items, lifetimes and packing only: what there is of a plan that is too large. NULL in *out: the order is illegal.
 * Errors: MEMORY. */
sluice_status slc_plan_lay_out(const slc_scheduling *in, const slc_order *train, const slc_scheduler *scheduler,
                               uint32_t tries, slc_plan **out);

/* How large the arena of that plan is, without making the rest of it. A figure above `limit` may be a lower bound of
 * it: that needs no packing. Errors: MEMORY; FORMAT (a defect of ours). */
sluice_status slc_plan_measure(const slc_scheduling *in, const slc_scheduler *scheduler, uint64_t limit,
                               uint64_t *arena_bytes);

/* ---- For schedulers: appending to an order ---- */

void slc_order_slot(slc_order *order, uint32_t micro_batch, uint32_t slot);
void slc_order_operation(slc_order *order, const slc_job *job, slc_item_kind kind, uint32_t micro_batch, uint32_t unit);
/* A run of blocks; `late` as in slc_item; `index`: GATHER_WINDOW's window. */
void slc_order_run(slc_order *order, slc_item_kind kind, bool late, uint32_t micro_batch, uint32_t unit, uint32_t index,
                   uint64_t first_block, uint64_t block_count);
void slc_order_fini(slc_order *order);
/* Moves one item to another place; those between move up. */
void slc_order_shift(slc_order *order, uint32_t from, uint32_t to);
/* Does an operation of this kind stand before the agreement of its step? Reductions, and what tells the agreement of
 * non-finite gradients of onebit units. */
bool slc_precedes_agreement(const slc_job *job, slc_item_kind kind);
/* Puts the agreement behind the last of those, after they have moved. */
void slc_order_settle_agreement(slc_order *order, const slc_job *job);
void slc_order_gather_window(slc_order *order, const slc_job *job, uint32_t micro_batch, uint32_t unit,
                             uint32_t window);

/* Gathers of all fsdp units whose window begins at `slot`. */
void slc_order_gathers_for(slc_order *order, const slc_job *job, const slc_strategy *strategies, bool evaluate,
                           uint32_t micro_batch, uint32_t slot);
/* One slot ahead, in training: gathers of the windows that begin at slot `i` + 1, counted over all micro-batches.
 * Before slot `i` those that may come while it computes; behind it (`behind`) those that cannot: a window that covers a
 * whole micro-batch is in use until its end, and which rows a micro-batch touches is known when the one before ends. */
void slc_order_gathers_ahead(slc_order *order, const slc_job *job, const slc_strategy *strategies, uint32_t i,
                             bool behind);
/* What a unit does as soon as its gradient is complete: its reduction; onebit: up to the exchange, or up to INSPECT
 * where it waits for the agreement. */
void slc_order_reduce(slc_order *order, const slc_job *job, const slc_strategy *strategies, uint32_t micro_batch,
                      uint32_t unit);
/* The same of all units whose gradient is complete after `slot` of this micro-batch (none before the last one unless
 * the job reduces each). */
void slc_order_reductions_after(slc_order *order, const slc_job *job, const slc_strategy *strategies,
                                uint32_t micro_batch, uint32_t slot);
/* What follows that, and the agreement where the unit waits for it: the gather of its gradient (dp with each), onebit's
 * exchange where it is not done yet, and the update. SLC_NONE: nothing. */
void slc_order_update(slc_order *order, const slc_job *job, const slc_strategy *strategies, uint32_t unit);
/* The same, without waiting for the agreement, of all units whose last reduction slc_order_reductions_after made. */
void slc_order_updates_after(slc_order *order, const slc_job *job, const slc_strategy *strategies, uint32_t micro_batch,
                             uint32_t slot);
/* Gathers of all updated values (oss, sdp), in the order in which the next forward needs them: at the step's end. Where
 * that forward begins with rows, they are late, so that these need not wait for them: one slot ahead, before slot `i`,
 * counted over all micro-batches. */
void slc_order_value_gathers(slc_order *order, const slc_job *job, const slc_strategy *strategies);
void slc_order_values_ahead(slc_order *order, const slc_job *job, const slc_strategy *strategies, uint32_t i);
bool slc_reduced_after(const slc_job *job, const slc_unit *unit, uint32_t micro_batch, uint32_t slot);
/* The unit whose update follows the last reduction of `reduced`: that one; of a ROWS unit its SPLIT unit, which has to
 * wait for it. SLC_NONE: there is none, or it waits for the agreement. */
uint32_t slc_updated_behind(const slc_job *job, const slc_strategy *strategies, uint32_t reduced);
/* May an operation of this kind, on this unit, be late at all (in the last micro-batch)? */
bool slc_may_be_late(const slc_job *job, const slc_item *item);
/* Updates of all units that wait for the agreement, in the order in which the next forward needs them. */
void slc_order_updates_at_end(slc_order *order, const slc_job *job, const slc_strategy *strategies);

/* All micro-batches, up to the agreement: windows one slot ahead, what `reduce` appends for a slot behind the next one,
 * so that gradients may stay while that computes. */
typedef void slc_order_reducer(const void *context, const slc_scheduling *in, slc_order *order, uint32_t micro_batch,
                               uint32_t slot);
void slc_order_one_ahead(slc_order *order, const slc_scheduling *in, slc_order_reducer *reduce, const void *context);

#endif
