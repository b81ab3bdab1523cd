/* Times say how long the parts of a job take, which planning needs besides sizes. They are measured by the engine,
 * estimated from sizes, or made up for machines that are not at hand. */
#pragma once

#include "lib/plan/plan.h"

/* One operation of V bytes (full buffer) on N ranks takes latency_s * (N-1) + V (N-1) / (N * bytes_per_s): the latency
 * of N-1 messages, then what a rank sends. An all-reduce is a reduce-scatter and an all-gather. */
typedef struct {
    double latency_s, bytes_per_s;
} slc_link_line;

typedef struct {
    slc_link_line reduce_scatter, all_gather;
    slc_link_line channel; /* of a message from one stage of a pipeline to another, whose V bytes take latency_s + V /
                              bytes_per_s. bytes_per_s 0: as all_gather */
    /* Compute and communication slow each other down: a second of communication (its time alone) lengthens the
     * compute that runs at the same time by kappa seconds and itself takes sigma seconds. So while both run, compute
     * advances at 1 - kappa / sigma of its speed and communication at 1 / sigma of its speed. kappa in [0, sigma],
     * sigma >= 1. */
    double kappa, sigma;
    /* The seconds by which one second of an update on the communication thread lengthens the compute that runs at the
     * same time, where a network goes on by itself: between kappa and sigma; a number below kappa means kappa. The
     * update itself takes sigma seconds. If every core computes already, update_kappa is about 1, however little
     * communication costs. */
    double update_kappa;
    /* True: the communication thread itself moves the bytes (memory of one host), so an update on that thread holds the
     * link up. False: a network goes on by itself while the thread computes. */
    bool thread_moves;
    uint64_t block_bytes; /* the smallest run (full buffer) that reaches 95 % of the bandwidth */
    double operation_s;   /* what starting and ending one operation costs the communication thread */
} slc_link;

typedef struct {
    double *slot_s;      /* [2L] seconds of each slot of one micro-batch, F0..F(L-1) then B(L-1)..B0, without waiting */
    double *weight_s;    /* [L] how much of a layer's backward makes the gradients of its weights, which no other layer
                            waits for; below 0: not known. NULL: of no layer */
    double *recompute_s; /* [L] what a layer's backward slot takes longer if the layer recomputes */
    double *keeps;       /* [L] the probability with which a step keeps each layer, drawn anew in each step; times of
                            slots and operations are those of steps that keep them. NULL: every step keeps all */
    /* An element's update on the communication thread, in seconds, for elements that this rank updates. */
    double update_s_per_element;
    double update_compute_s_per_element; /* the same on the compute threads, all of them together; 0: not known */
    /* Seconds on the communication thread for an exchange, for each element: its two passes, compressing before it and
     * applying the result in place of the update; and averaging, for each element that a rank averages (an N-th of
     * all). */
    double compress_s_per_element, apply_s_per_element, average_s_per_element;
    double outside_s; /* of a step: what the program does between its last slot and the next step's first one */
    double late_s;    /* how much later than this rank the last one comes to an operation, in the mean */
    slc_link link;
} slc_times;

/* Seconds of an operation that moves so many bytes (full buffer), alone on the link: reductions, gathers, an exchange's
 * two phases (without the average); AGREE with 0 bytes costs the latency. SLOT and what the thread computes (UPDATE,
 * INSPECT, COMPRESS) give 0; the functions below have those. */
double slc_transfer_s(const slc_job *job, const slc_times *times, slc_item_kind kind, uint64_t bytes);
/* Seconds of an operation on `elements` of a unit, with an exchange's average and with the row lists that operations of
 * a ROWS unit send first. `unit` is NULL and `elements` 0 for AGREE. */
double slc_operation_s(const slc_job *job, const slc_times *times, slc_item_kind kind, const slc_unit *unit,
                       uint64_t elements);
/* Seconds that updating a run of a unit takes on the communication thread (dp and onebit update all of it, others their
 * N-th). */
double slc_update_s(const slc_job *job, const slc_times *times, slc_strategy strategy, uint64_t elements);
/* Seconds of that update on the compute lane; the time on the communication thread if this one is not known. */
double slc_computed_update_s(const slc_job *job, const slc_times *times, slc_strategy strategy, uint64_t elements);
/* Seconds of both passes of an exchange, compressing and applying. */
static inline double slc_passes_s(const slc_times *times, uint64_t elements)
{
    return times->compress_s_per_element * (double)elements + times->apply_s_per_element * (double)elements;
}
/* Seconds that the communication thread computes for an item: UPDATE (under onebit the second pass) or COMPRESS, else
 * 0. INSPECT is counted as part of a slot's end, so it is 0. */
double slc_thread_s(const slc_job *job, const slc_times *times, slc_item_kind kind, slc_strategy strategy,
                    uint64_t elements);
/* Seconds of an item of a plan on its lane, alone: slc_thread_s, slc_computed_update_s or slc_operation_s. An
 * ALL_REDUCE of a onebit unit counts 0, for only a few steps run it. `item` is not a SLOT. */
double slc_item_s(const slc_job *job, const slc_times *times, const slc_strategy *strategies, const slc_item *item);
/* Returns true if the communication thread computes this kind (unless an update is on the compute lane). All other
 * operations are moved by the link. */
static inline bool slc_is_on_thread(slc_item_kind kind)
{
    return kind == SLC_ITEM_UPDATE || kind == SLC_ITEM_COMPRESS || kind == SLC_ITEM_INSPECT;
}
/* Seconds of a slot, with what its layer recomputes. `recompute` is [L]; NULL: no layer recomputes. */
double slc_slot_s(const slc_job *job, const slc_times *times, const bool *recompute, uint32_t slot);

/* Number of elements in a run of blocks of a unit. */
uint64_t slc_run_elements(const slc_unit *unit, uint64_t first_block, uint64_t block_count);

/* Guesses times from sizes alone, for a first plan: a forward in proportion to the bytes of the layer's parameters and
 * activations (a fused unit's in equal shares), a backward twice that, a link of a common speed. The caller calls
 * slc_times_fini. Errors: MEMORY. */
sluice_status slc_times_estimate(const slc_job *job, slc_times *out);
void slc_times_estimate_exchange(slc_times *times); /* only the three times of an exchange */
sluice_status slc_times_copy(const slc_job *job, const slc_times *times, slc_times *out);
/* Sets the probabilities with which a step keeps each layer, copied; NULL, or 1 for all of them: every step keeps all.
 * Errors: MEMORY, with which the times stay as they were. */
sluice_status slc_times_set_keeps(const slc_job *job, const double *keeps, slc_times *times);
/* Layers that a step keeps in the mean. */
double slc_times_depth(const slc_job *job, const slc_times *times);
/* Multiplies the times of slots and recomputation by the probabilities: what they take in the mean. Operations stay. */
void slc_times_weigh_slots(const slc_job *job, slc_times *times);
void slc_times_fini(slc_times *times);
