/* The steps of a program: its NCCL calls repeat. One thread. */
#pragma once

#include "plugins/nccl/record/records.h"

/* A process's calls on one device that move data and did not fail, in the order in which they were made, and the
 * longest stretch that repeats at least three times, with its shortest period. The stretch is looked for among the last
 * 16384 calls, but may begin before them. If layers are alike, a step is several periods: as many as lie between longer
 * pauses. A warm-up before the stretch and a tail after it are allowed. Two calls are alike if they have the same
 * communicator, operation, dtype, operator, count and peer. */
typedef struct {
    const slc_nccl_entry **calls;
    size_t call_count;
    size_t first;    /* in `calls`: where the first step begins: after a pause, if pauses tell steps apart */
    size_t length;   /* calls in a step; 0: nothing repeats, and what follows is 0 */
    size_t count;    /* whole steps, one after another */
    uint64_t bytes;  /* of a step */
    double period_s; /* median from the first call of a step to the first call of the next one */
} slc_nccl_steps;

/* The entries stay the process's. Errors: MEMORY. Free it after an error too. */
sluice_status slc_nccl_steps_find(const slc_nccl_process *process, int device, slc_nccl_steps *out);
void slc_nccl_steps_free(slc_nccl_steps *steps);

/* Returns true if two calls are alike, in this sense. */
bool slc_nccl_calls_alike(const slc_nccl_entry *a, const slc_nccl_entry *b);

/* Returns true if the call moves data. */
bool slc_nccl_moves_data(const slc_nccl_entry *entry);

/* Returns the nth device (from 0) that the process's communicators are on, in the order of their rows; -1: there are no
 * more. */
int slc_nccl_device(const slc_nccl_process *process, unsigned nth);
