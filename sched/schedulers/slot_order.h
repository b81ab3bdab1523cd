/* From the slot model's answer to a total order: fractions become runs of blocks, positions become places among the
 * slots. */
#ifndef SLC_SLOT_ORDER_H
#define SLC_SLOT_ORDER_H

#include "ilp/slot_model.h"
#include "sched/scheduler.h"

typedef struct {
    uint32_t most_runs;    /* of a unit */
    uint32_t update_delay; /* operations that may go on the link between a reduction and its update */
    bool split_ahead; /* what is reduced of SPLIT units beside a slot stands before it: the sum takes memory of its own,
                         which behind the slot may be what that leaves, while before it the slot may wait for what the
                         reduction leaves */
    bool fuse;        /* runs of one operation at one place become one item: fewer latencies, coarser overlap */
} slc_slot_order_options;

/* Appends the training order. `in` holds the solution's strategies and recomputation. */
void slc_order_from_slots(const slc_scheduling *in, const slc_slot_solution *solution,
                          const slc_slot_order_options *options, slc_order *order);

#endif
