/* The event simulator: runs a plan's training program on two lanes as the engine does, with the profile's times. No
 * memory is modelled here beyond the plan's own waits: those hold the tickets already. */
#ifndef SLC_SIMULATE_H
#define SLC_SIMULATE_H

#include "lib/plan/times.h"

/* An operation is open from when its waits are over (its memory is claimed then), runs from when the link or the thread
 * is free for it, and is over when it and all operations before it have ended (its memory is released then). A slot
 * opens when it starts and is over when it ends. */
typedef struct {
    double open_s, start_s, end_s, over_s;
} slc_item_times;

/* Means over the steady passes; step_s is compute_s + exposed_s. */
typedef struct {
    double step_s;          /* in the steady state: the mean period of the later passes */
    double exposed_s;       /* of it, what the compute lane waits */
    double compute_s;       /* slots, and updates on the compute lane, as lengthened by communication beside them */
    double communication_s; /* operations on the link, lengthened too */
    double update_s;        /* updates and compression on the communication thread */
    uint64_t peak_bytes;    /* highest end of any claim */
    uint32_t passes;        /* that were simulated */
    bool steady;            /* what one pass (or two) left for the next was the same again: figures are exact */
} slc_forecast;

/* The rules. The compute lane runs slots, and the updates that are put there, in order, each when its waits are over;
 * such an update is to all rules below as a slot. The communication lane starts operations in order; up to 8 are open
 * at a time. Another UPDATE occupies the communication thread; other operations
 * occupy the link, one after another in order; where link.thread_moves the two are one resource. An update may run
 * while earlier operations are still on the link, once its waits are over; an operation counts as over, for waits, when
 * it and all operations before it in the lane are done. While a slot and a link operation both run, both advance as
 * slc_link's kappa and sigma say; the same holds for an update beside a slot, and for both beside it at once. Passes
 * run one after another without a pause; late items of pass k belong to step k - 1. A pass ends when its last slot has
 * ended and AGREE and all its late items are over; nothing of the next pass starts before. */
typedef struct {
    double spread; /* 0: exact. Else every duration is multiplied by a random factor in [1 - spread, 1 + spread] */
    uint64_t seed;
    uint32_t passes; /* at most; 0: enough for a steady state. Without one the later half is what counts */
} slc_simulation;

/* `options` NULL: exact. Deterministic. The plan has passed slc_plan_validate, or would. Errors: MEMORY; FORMAT when
 * nothing can go on (a defect of the plan). */
sluice_status slc_simulate(const slc_job *job, const slc_times *times, const slc_plan *plan,
                           const slc_simulation *options, slc_forecast *out);

/* Also when each item starts and ends in the last simulated pass, in seconds from the start of what that pass
 * computes first (late items and those that the lane ran ahead may be negative or beyond step_s). `items` holds
 * plan->train.item_count. */
sluice_status slc_simulate_items(const slc_job *job, const slc_times *times, const slc_plan *plan,
                                 const slc_simulation *options, slc_forecast *out, slc_item_times *items);

#endif
