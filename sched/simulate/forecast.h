/* The options of a simulation, the rules by which it runs, and the forecast that it gives. */
#pragma once

#include "lib/plan/times.h"
#include "lib/plan/effort/work.h"

/* An operation opens when its waits are over (its memory is claimed then), starts when the link or the thread is free
 * for it, ends, and is over when it and all operations before it have ended (its memory is released then). An item of
 * the compute lane opens when it starts and is over when it ends. All times are in seconds. */
typedef struct {
    double open_s, start_s, end_s, over_s;
} slc_item_times;

/* Seconds; means over the steady passes. step_s is compute_s + exposed_s + outside_s. */
typedef struct {
    double step_s;    /* the mean period of the later passes */
    double exposed_s; /* the part of it in which the compute lane waits */
    double compute_s; /* slots, and updates on the compute lane, as lengthened by communication that runs at the same
                         time */
    double outside_s; /* what the program does outside of slots, as lengthened likewise */
    double communication_s; /* operations on the link, as lengthened by compute; not that ranks come late to them */
    double update_s;        /* updates and compression on the communication thread */
    uint64_t peak_bytes;    /* highest end of any claim */
    uint32_t passes;        /* how many were simulated */
    bool steady;            /* one pass (or two) left the lanes as it found them, so the figures are exact */
} slc_forecast;

/* The rules. The compute lane runs slots, and the updates that the plan puts there, in order, each when its waits are
 * over; such an update counts as a slot in all rules below. The communication lane starts operations in order; up to 8
 * are open at a time. All other updates and COMPRESS occupy the communication thread; all other operations occupy the
 * link, one after another in order; if link.thread_moves, link and thread are one resource. Work on the thread may run
 * while earlier operations are still on the link, once its waits are over. For waits, an operation counts as over when
 * it and all operations before it in its lane have ended. While a slot and a link operation both run, both advance as
 * slc_link's kappa and sigma say; so do a slot and work on the thread, and a slot and both of them, then with
 * update_kappa in kappa's place. Passes run one after another without a pause; late items of pass k belong to step k
 * - 1. A pass ends when its last slot has ended, AGREE and all its late items are over, and what the program does
 * outside of slots is done, which counts as a slot in all rules; nothing of the next pass starts before. The other
 * ranks come to an operation on the link late_s after it has opened, and it moves nothing before. */
typedef struct {
    double spread; /* 0: exact. Otherwise every duration is multiplied by a random factor in [1 - spread, 1 + spread] */
    uint64_t seed;
    uint32_t passes;        /* at most; 0: enough for a steady state. If none is reached, the later half counts */
    slc_work *work;         /* counts; NULL: nobody asks */
    uint32_t micro_batches; /* that each step runs, of the job's (slc_ordinal_of_run): others take no time; 0: all */
    /* [draws * layers] that steps leave out (lib/plan/left_out.h), those of draw k modulo `draws` in pass k + 1: they
     * take no time. NULL: draws by probabilities, where the times have some (slc_times.keeps), else none. With several
     * draws each pass but the first counts once, and a pass carries on from what the one before has left. */
    const bool *left_out;
    uint32_t draws;    /* 0: one */
    bool few_draws;    /* of draws by probabilities: SLC_DRAWS_FEW, not SLC_DRAWS */
    bool latency_once; /* runs of an operation after its first blocks cost no latency, as if they were one message */
} slc_simulation;

/* The options of a search that compares plans with each other. */
static inline slc_simulation slc_simulation_of_search(slc_work *work)
{
    return (slc_simulation){.work = work, .few_draws = true};
}
