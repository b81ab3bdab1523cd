/* How many bytes are alive while an order is being written: the sum of lifetimes, without packing. */
#ifndef SLC_LIVE_BYTES_H
#define SLC_LIVE_BYTES_H

#include "sched/scheduler.h"

typedef struct {
    const slc_scheduling *in;
    int64_t *slot_bytes; /* [M * 2L] activations and workspaces of a slot */
    int64_t resident, transient;
} slc_live_bytes;

bool slc_live_bytes_init(slc_live_bytes *live, const slc_scheduling *in); /* false: no memory */
void slc_live_bytes_fini(slc_live_bytes *live);

/* A late operation of the order: what it frees is alive when the pass begins. To be called of each before the rest. */
void slc_live_bytes_late(slc_live_bytes *live, const slc_item *item);

/* Would the limit hold during this slot with one more gather (NULL: none)? */
bool slc_live_bytes_fit(const slc_live_bytes *live, const slc_item *gather, uint32_t micro_batch, uint32_t slot);

/* The order has come past an operation, past a slot. */
void slc_live_bytes_pass(slc_live_bytes *live, const slc_item *item);
void slc_live_bytes_slot(slc_live_bytes *live, uint32_t micro_batch, uint32_t slot);

#endif
