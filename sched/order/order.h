/* An order under construction: one total order of compute slots and operations. A scheduler appends to it; the
 * functions below know which items each operation has to come after. */
#pragma once

#include "lib/plan/effort/cancel.h"
#include "lib/plan/roles.h"
#include "lib/plan/times.h"
#include "lib/plan/effort/work.h"
#include "sched/order/layer_users.h"

#include <stddef.h>

/* An order under construction; slc_order_fini frees it. It starts as {0}. */
typedef struct {
    slc_item *items;
    uint32_t count, capacity;
    bool failed;           /* no memory for an item, or cancelled; the caller looks once, at the end */
    slc_layer_users users; /* listed once slc_order_users has been asked */
} slc_order;

/* The input of a scheduler. */
typedef struct {
    const slc_job *job;
    const slc_strategy *strategies; /* [units] */
    const bool *recompute;          /* [L]; NULL: no layer recomputes */
    const slc_times *times;         /* NULL: not known; schedulers that need times estimate them */
    uint64_t limit;                 /* bytes that the arena may have; a scheduler that hoists stays below */
    uint64_t seed;                  /* for `random` */
    const slc_cancel *cancel;       /* NULL: none; else everything that makes a plan of this may return INTERRUPTED */
    slc_work *work;                 /* counts what everything that makes a plan of this does; NULL: nobody asks */
} slc_scheduling;

/* Appends a copy of an item, without its waits. */
void slc_order_append(slc_order *order, slc_item item);
void slc_order_slot(slc_order *order, uint32_t micro_batch, uint32_t slot);
void slc_order_operation(slc_order *order, const slc_job *job, slc_item_kind kind, uint32_t micro_batch, uint32_t unit);
/* Appends a run of blocks. `late` is that of slc_item; `index` is GATHER_WINDOW's window. */
void slc_order_run(slc_order *order, slc_item_kind kind, bool late, uint32_t micro_batch, uint32_t unit, uint32_t index,
                   uint64_t first_block, uint64_t block_count);
void slc_order_fini(slc_order *order);
/* Gives up the items, which the caller frees, and ends the order. */
slc_item *slc_order_take_items(slc_order *order);
/* The units that a layer uses, ascending; all orders of `order` must be of one job. *count is 0 if memory ran out.
 */
const uint32_t *slc_order_users(slc_order *order, const slc_job *job, uint32_t layer, uint32_t *count);
/* Moves one item to another place; the items in between move by one. */
void slc_order_shift(slc_order *order, uint32_t from, uint32_t to);
/* Moves the agreement right after the last operation that must come before it. If any of those is late, it goes after
 * the last late one and becomes late too. */
void slc_order_settle_agreement(slc_order *order, const slc_job *job);
void slc_order_gather_window(slc_order *order, const slc_job *job, uint32_t micro_batch, uint32_t unit,
                             uint32_t window);

/* Appends the gathers of all fsdp units whose window begins at `slot`. */
void slc_order_gathers_for(slc_order *order, const slc_job *job, const slc_strategy *strategies, bool evaluate,
                           uint32_t micro_batch, uint32_t slot);
/* Appends, for training, the gathers one slot ahead: of windows that begin at slot `i` + 1, counted over all
 * micro-batches. The caller asks twice. Before slot `i` (the last argument false) these are the gathers that may run
 * while the slot computes. After the slot (true) these are the others: a window that covers a whole micro-batch is in
 * use until its end, and which rows a micro-batch touches is known only when the previous one ends. */
void slc_order_gathers_ahead(slc_order *order, const slc_job *job, const slc_strategy *strategies, uint32_t i,
                             bool after_slot);
/* Appends the operations that a unit may do as soon as its gradient is complete: its reduction; for onebit everything
 * up to the exchange, or up to INSPECT if the unit waits for the agreement. */
void slc_order_reduce(slc_order *order, const slc_job *job, const slc_strategy *strategies, uint32_t micro_batch,
                      uint32_t unit);
/* Calls slc_order_reduce for all units whose gradient is complete after `slot` of this micro-batch (before the last
 * micro-batch there are none, unless the job reduces each). */
void slc_order_reductions_after(slc_order *order, const slc_job *job, const slc_strategy *strategies,
                                uint32_t micro_batch, uint32_t slot);
/* Appends the operations that follow the reduction, and the agreement if the unit waits for it: the gather of its
 * gradient (dp with each), onebit's compression and exchange unless they are done, and the update. SLC_NONE:
 * nothing. */
void slc_order_update(slc_order *order, const slc_job *job, const slc_strategy *strategies, uint32_t unit);
/* Calls slc_order_update for the units whose last reduction slc_order_reductions_after appended, except those that wait
 * for the agreement. */
void slc_order_updates_after(slc_order *order, const slc_job *job, const slc_strategy *strategies, uint32_t micro_batch,
                             uint32_t slot);
/* Appends the gathers of all updated values (oss, sdp) at the step's end, in the order in which the next forward needs
 * them. In a job that splits they are late instead, so that the gather of the next step's rows need not wait for them:
 * slc_order_values_ahead appends them one slot ahead, before slot `i`, counted over all micro-batches. */
void slc_order_value_gathers(slc_order *order, const slc_job *job, const slc_strategy *strategies);
void slc_order_values_ahead(slc_order *order, const slc_job *job, const slc_strategy *strategies, uint32_t i);
bool slc_reduced_after(const slc_job *job, const slc_unit *unit, uint32_t micro_batch, uint32_t slot);
/* Returns the unit whose update follows the last reduction of `reduced`: usually `reduced` itself; for a ROWS unit its
 * SPLIT unit, which waits for it. SLC_NONE: there is none, or it waits for the agreement. */
uint32_t slc_updated_after(const slc_job *job, const slc_strategy *strategies, uint32_t reduced);
/* Appends the updates of all units that wait for the agreement, in the order in which the next forward needs them. */
void slc_order_updates_at_end(slc_order *order, const slc_job *job, const slc_strategy *strategies);

/* Appends all micro-batches, up to the agreement. Windows are gathered one slot ahead; what `reduce` appends for a slot
 * comes after the next slot, so that gradients may stay in memory while that one computes. */
typedef void slc_order_reducer(const void *context, const slc_scheduling *in, slc_order *order, uint32_t micro_batch,
                               uint32_t slot);
void slc_order_one_ahead(slc_order *order, const slc_scheduling *in, slc_order_reducer *reduce, const void *context);
