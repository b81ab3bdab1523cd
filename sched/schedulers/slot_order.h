/* Turns the slot model's answer into a total order: fractions become runs of blocks, positions become places among the
 * slots. */
#pragma once

#include "ilp/slot_model.h"
#include "sched/scheduler.h"

typedef struct {
    uint32_t most_runs;    /* most runs that a unit is cut into */
    uint32_t update_delay; /* operations that go on the link between a reduction and its update */
    bool split_ahead; /* a SPLIT unit's reduction that runs during a slot is placed before the slot instead of after it.
                         Its sum takes memory of its own. After the slot that may be memory which the slot releases, and
                         the reduction waits for the slot; before it, the slot may have to wait for memory that the
                         reduction releases */
    bool fuse;        /* runs of one operation at one place become one item: fewer latencies, coarser overlap */
} slc_slot_order_options;

/* Appends the training order. `in` holds the solution's strategies and recomputation. */
void slc_order_from_slots(const slc_scheduling *in, const slc_slot_solution *solution,
                          const slc_slot_order_options *options, slc_order *order);
