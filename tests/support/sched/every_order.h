/* Finds the fastest of all orders of a small job by search: an oracle to compare planners with, far too slow for
 * planning.
 *
 * The search looks at all orders of runs of single base blocks, late or not, in which an update follows its reduction
 * at once and the runs of one operation of a unit move in the order of their blocks. If runs of a unit are equally long
 * and messages cost no latency, this excludes no faster order: joining runs cannot help, and equal runs may change
 * places. Each order that could be faster is packed and simulated.
 *
 * Cutting branches off is sound as long as compute and communication do not slow each other down (then all times are
 * sums and maxima, and no wait can make a step shorter): orders are cut off that miss a deadline of the wanted step on
 * the link alone, or whose live bytes are above the limit. */
#pragma once

#include "sched/scheduler.h"
#include "sched/simulate/simulate.h"

enum { SLC_EVERY_ORDER_OPERATIONS = 32, SLC_EVERY_ORDER_SLOTS = 16, SLC_EVERY_ORDER_UNITS = 9 };

typedef struct {
    const slc_job *job;     /* one micro-batch, no barrier, nothing reduced each; no unit onebit or split */
    const slc_times *times; /* kappa 0, sigma 1, a network that moves bytes by itself */
    const slc_strategy *strategies;
    uint64_t limit;       /* bytes of the arena */
    double faster_than_s; /* only shorter steps count */
    double worth;         /* share of the step; smaller gains are not looked for */
    /* False: slots are only placed where no gather could come later and no reduction earlier. That is much quicker, and
     * complete if packing were perfect; but shorter lives are packed more tightly, and then items wait for one
     * another. */
    bool every_way;
    uint64_t deadline_ns; /* in slc_clock_ns; 0: none */
} slc_every_order_request;

typedef struct {
    slc_plan *plan;  /* the fastest that was found; the receiver destroys it. NULL: none is faster than asked */
    double step_s;   /* step of that plan */
    bool complete;   /* every way; all other orders were looked at or cut off, so none is faster by more than `worth` */
    uint64_t orders; /* sequences of operations that could be faster */
    uint64_t packed; /* plans made from them */
    uint64_t refused; /* plans that the packer refused: live bytes within the limit, arena above it */
} slc_every_order_answer;

/* Errors: ARGUMENT (a job or times of another kind, or more than the enum above), MEMORY. */
sluice_status slc_every_order(const slc_every_order_request *request, slc_every_order_answer *answer);
