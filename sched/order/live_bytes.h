/* Counts the bytes that are alive while an order is being written: the sum of lifetimes, without packing. */
#pragma once

#include "sched/scheduler.h"

typedef struct {
    const slc_scheduling *in;
    int64_t *slot_bytes; /* [M * 2L] bytes of the activations and workspaces of each slot */
    int64_t *beginning;  /* [2L] of the gradients that begin at a slot of a micro-batch */
    int64_t *ending;     /* [2L] of the gathered values whose window ends at a slot */
    int64_t resident, transient;
} slc_live_bytes;

bool slc_live_bytes_init(slc_live_bytes *live, const slc_scheduling *in); /* false: no memory */
void slc_live_bytes_fini(slc_live_bytes *live);

/* Counts a late operation of the order: the memory that it frees is already alive when the pass begins. Call it for
 * each late operation before anything else. */
void slc_live_bytes_late(slc_live_bytes *live, const slc_item *item);

/* Returns true if the limit would hold during this slot with one more gather (NULL: none). */
bool slc_live_bytes_fit(const slc_live_bytes *live, const slc_item *gather, uint32_t micro_batch, uint32_t slot);

/* Moves on past an operation, or past a slot, of the order. */
void slc_live_bytes_pass(slc_live_bytes *live, const slc_item *item);
void slc_live_bytes_slot(slc_live_bytes *live, uint32_t micro_batch, uint32_t slot);
