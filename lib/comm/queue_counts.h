/* The counts of a queue of operations, or of a channel's transfers: how many have been submitted, and how many have
 * ended. One thread submits; whoever does the work raises `completed` and `finished`. Private to lib/comm. */
#pragma once

#include "lib/base/gate.h"
#include "lib/comm/failure.h"

/* A failure raises each gate that callers wait for by this much, so that every wait ends. */
enum { SLC_FAR_BEYOND = 1 << 30 };

typedef struct {
    _Atomic uint32_t submitted;
    slc_gate completed;
    _Atomic uint32_t finished;        /* items that are complete; a failure does not raise it */
    _Atomic uint32_t waiting, wanted; /* calls that wait, and the count that the last of them waits for */
} slc_queue_counts;

/* Waits until `index` items are complete or the world has failed. If it has to wait, *waiter becomes `thread`, for
 * heartbeats: the calling thread if it needs just these items, 0 if it needs room for another one. Any thread but the
 * one that raises the counts. */
void slc_queue_counts_wait(slc_queue_counts *counts, uint32_t index, _Atomic uint64_t *waiter, uint64_t thread);

/* Returns OK if `index` items are complete, else the failure that has ended the wait for them. */
sluice_status slc_queue_counts_result(const slc_queue_counts *counts, uint32_t index, slc_failure *failure);

/* Returns true if a call waits for items that are not complete. Any thread. */
bool slc_queue_counts_awaited(const slc_queue_counts *counts);

/* Ends every wait for items that have been submitted, because the world has failed. */
void slc_queue_counts_give_up(slc_queue_counts *counts);
