/* How long the parts of a job take: what planning needs beside sizes. Measured by the engine, estimated from sizes, or
 * made for machines that one does not have. */
#ifndef SLC_PLAN_TIMES_H
#define SLC_PLAN_TIMES_H

#include "lib/plan/plan.h"

/* One operation of V bytes (full buffer) on N ranks takes latency_s * (N-1) + V (N-1) / (N * bytes_per_s): the latency
 * of N-1 messages, then what a rank sends. An all-reduce is a reduce-scatter and an all-gather. */
typedef struct {
    double latency_s, bytes_per_s;
} slc_link_line;

typedef struct {
    slc_link_line reduce_scatter, all_gather;
    /* Under each other: a second of communication (as it takes alone) lengthens the compute beside it by kappa seconds
     * and itself takes sigma seconds. So while both run, compute advances at 1 - kappa / sigma of its speed and
     * communication at 1 / sigma. kappa in [0, sigma], sigma >= 1. */
    double kappa, sigma;
    /* The communication thread itself moves the bytes (memory of one host): an update there holds the link up. False:
     * a network goes on by itself while the thread computes. */
    bool thread_moves;
    uint64_t block_bytes; /* the smallest run (full buffer) that reaches 95 % of the bandwidth */
    double operation_s;   /* of the communication thread for starting and ending one operation */
} slc_link;

typedef struct {
    double *slot_s;              /* [2L] seconds of each slot of one micro-batch, F0.. then B(L-1).., without waiting */
    double *recompute_s;         /* [L] added to a layer's backward slot where it recomputes */
    double update_s_per_element; /* of the optimizer on the communication thread, for an element that this rank owns */
    double update_compute_s_per_element; /* the same on the compute threads, all together; 0: not known */
    /* On the communication thread too, for each element: of an exchange both passes, before it and in place of the
     * update, and what averaging takes for each element that a rank averages (an N-th). */
    double compress_s_per_element, apply_s_per_element, average_s_per_element;
    slc_link link;
} slc_times;

/* Seconds of an operation that moves so many bytes (full buffer), alone on the link: RS, AR, gathers, an exchange's two
 * phases (the average apart); AGREE with 0 bytes is a latency. What the thread computes (UPDATE, INSPECT, COMPRESS) and
 * SLOT: 0, see below. */
double slc_transfer_s(const slc_job *job, const slc_times *times, slc_item_kind kind, uint64_t bytes);
/* The same of `elements` of a unit, with an exchange's average, and of ROWS with the lists that go first; NULL and 0
 * for AGREE. */
double slc_operation_s(const slc_job *job, const slc_times *times, slc_item_kind kind, const slc_unit *unit,
                       uint64_t elements);
/* Seconds of an update of that run of a unit under a strategy (dp updates all of it, others their N-th). */
double slc_update_s(const slc_job *job, const slc_times *times, slc_strategy strategy, uint64_t elements);
/* The same on the compute lane; as on the communication thread where that is not known. */
double slc_computed_update_s(const slc_job *job, const slc_times *times, slc_strategy strategy, uint64_t elements);
/* Seconds that the communication thread computes for an item: UPDATE (with ONEBIT the second pass), COMPRESS; else 0.
 * INSPECT is part of what a slot's end costs: 0. */
double slc_thread_s(const slc_job *job, const slc_times *times, slc_item_kind kind, slc_strategy strategy,
                    uint64_t elements);
/* Seconds of an item of a plan on its lane, alone: slc_thread_s, slc_computed_update_s or slc_operation_s. Only a few
 * steps average the gradients of onebit units: their ALL_REDUCE counts 0. Not SLOT. */
double slc_item_s(const slc_job *job, const slc_times *times, const slc_strategy *strategies, const slc_item *item);
/* Does the communication thread compute it, unless it is on the compute lane? Other operations the link moves. */
static inline bool slc_is_on_thread(slc_item_kind kind)
{
    return kind == SLC_ITEM_UPDATE || kind == SLC_ITEM_COMPRESS || kind == SLC_ITEM_INSPECT;
}
/* A slot's seconds, with what its layer recomputes. `recompute` [L], NULL: nothing. */
double slc_slot_s(const slc_job *job, const slc_times *times, const bool *recompute, uint32_t slot);

/* Elements of a run of blocks of a unit. */
uint64_t slc_run_elements(const slc_unit *unit, uint64_t first_block, uint64_t block_count);

/* Times guessed from sizes alone, for a first plan: forward in proportion to the bytes of a layer's parameters and
 * activations (a fused unit's in equal shares), backward twice that, a link at a common speed. Errors: MEMORY. */
sluice_status slc_times_estimate(const slc_job *job, slc_times *out);
void slc_times_estimate_exchange(slc_times *times); /* the three times of an exchange alone */
sluice_status slc_times_copy(const slc_job *job, const slc_times *times, slc_times *out);
void slc_times_fini(slc_times *times);

#endif
