/* Profiles drawn from a seed, for studying planners: chains of layers of unequal sizes and times. The same options and
 * seed give the same profile (times to the last bit only with one C library). */
#pragma once

#include "lib/plan/profile.h"

typedef struct {
    double least, most; /* drawn evenly on a logarithmic scale; if equal, that value */
} slc_random_range;

typedef struct {
    slc_random_range layers;        /* at least 1; rounded */
    slc_random_range unit_bytes;    /* bytes of each layer's parameters */
    slc_random_range compute_ratio; /* r: seconds of all slots of a step over those of one reduce-scatter and one
                                       all-gather of all parameters, in whole units. The slots are scaled to reach it */
    /* Each slot's time differs by a factor in [1/x, x] from what its size gives; x >= 1. */
    slc_random_range time_spread;
    slc_random_range activations; /* bytes that a layer keeps for its backward, over the bytes of its parameters */
    /* Numbers of ranks and of micro-batches; 0: drawn. Drawn are 2, 4, 8 or 16 ranks, and 1 micro-batch or, in a third
     * of all cases, 2 to 4. */
    uint32_t world, micro_batches;
    double bytes_per_s, latency_s;
    double kappa, sigma, update_s_per_element;
    double compress_s_per_element, apply_s_per_element, average_s_per_element; /* slc_times */
    bool thread_moves;
    bool can_recompute;
    double tied_share;    /* chance that the first and the last layer share a unit of up to eight times the size */
    double split_share;   /* share of tied units that are split by their uses; their first layer looks up to half of the
                             rows up */
    uint32_t unit_blocks; /* base blocks in a unit of the mean size, approximately; at least 1 */
} slc_random_options;

/* The defaults: 4 to 24 layers of 10 to 100 MB, r 0.4 to 2.5, spread 1.3, activations 0.2 to 2, 10 Gbit/s, 50 us, kappa
 * 0.1, sigma 1.05, 2e-10 s for one update, tied in 0.3, none of them split, 16 blocks. */
slc_random_options slc_random_defaults(void);

/* Draws a profile, which the caller destroys. Errors: ARGUMENT (a range that is not one), MEMORY. */
sluice_status slc_random_profile(const slc_random_options *options, uint64_t seed, slc_profile **out);
