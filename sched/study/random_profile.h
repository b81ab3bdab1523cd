/* Profiles drawn from a seed, to study planners with: chains of layers of unequal sizes and times. The same options and
 * seed give the same profile (times to the last bit only with one C library). */
#ifndef SLC_RANDOM_PROFILE_H
#define SLC_RANDOM_PROFILE_H

#include "lib/plan/profile.h"

typedef struct {
    double least, most; /* drawn evenly on a logarithmic scale; equal: that value */
} slc_random_range;

typedef struct {
    slc_random_range layers;        /* at least 1; rounded */
    slc_random_range unit_bytes;    /* of each layer's parameters */
    slc_random_range compute_ratio; /* r: seconds of all slots of a step over those of one reduce-scatter and one
                                       all-gather of all parameters, in whole units. Set by scaling the slots */
    slc_random_range time_spread;   /* each slot is by a factor in [1/x, x] off what its size gives; x >= 1 */
    slc_random_range activations;   /* bytes that a layer keeps for its backward over those of its parameters */
    uint32_t world, micro_batches;  /* 0: drawn: 2, 4, 8 or 16 ranks; 1, or 2 to 4 in a third of all cases */
    double bytes_per_s, latency_s;
    double kappa, sigma, update_s_per_element;
    double compress_s_per_element, apply_s_per_element, average_s_per_element; /* slc_times */
    bool thread_moves;
    bool can_recompute;
    double tied_share;    /* chance that the first and the last layer share a unit of up to eight times the size */
    double split_share;   /* of those: the first looks up to a half of its rows up, and they are split by their uses */
    uint32_t unit_blocks; /* base blocks in a unit of the mean size, about; at least 1 */
} slc_random_options;

/* 4 to 24 layers of 10 to 100 MB, r 0.4 to 2.5, spread 1.3, activations 0.2 to 2, 10 Gbit/s, 50 us, kappa 0.1, sigma
 * 1.05, one update as 2e-10 s, tied in 0.3, none of them split, 16 blocks. */
slc_random_options slc_random_defaults(void);

/* Errors: ARGUMENT (a range that is not one), MEMORY. */
sluice_status slc_random_profile(const slc_random_options *options, uint64_t seed, slc_profile **out);

#endif
