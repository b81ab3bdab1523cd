/* Sums over the layers of a chain, from which both programmes that cut it take what a stage computes and keeps. Private
 * to sched/pipeline/partition. */
#pragma once

#include "sched/pipeline/partition/partition.h"

typedef struct {
    double *time_s;                  /* [layers + 1] of the layers before each; the others likewise */
    uint64_t *fixed, *values, *kept; /* 0 if the chain has none */
} slc_chain_sums;

/* Adds the chain up. slc_chain_sums_fini frees the sums, after an error too. Errors: MEMORY. */
sluice_status slc_chain_sums_init(slc_chain_sums *sums, const slc_chain *chain);
void slc_chain_sums_fini(slc_chain_sums *sums);

/* Seconds of a micro-batch in the layers [first, end). */
static inline double slc_chain_s(const slc_chain_sums *sums, uint32_t first, uint32_t end)
{
    return sums->time_s[end] - sums->time_s[first];
}

/* Bytes of the values of the layers [first, end). */
static inline uint64_t slc_chain_values(const slc_chain_sums *sums, uint32_t first, uint32_t end)
{
    return sums->values[end] - sums->values[first];
}

/* Bytes of a stage that has the layers [first, end), keeps `versions` versions of their values and holds `held`
 * micro-batches. */
static inline uint64_t slc_chain_bytes(const slc_chain_sums *sums, uint32_t first, uint32_t end, uint64_t versions,
                                       uint64_t held)
{
    return sums->fixed[end] - sums->fixed[first] + versions * slc_chain_values(sums, first, end) +
           held * (sums->kept[end] - sums->kept[first]);
}

/* Returns true if a cut may lie before this layer. */
static inline bool slc_chain_may_cut(const slc_chain *chain, uint32_t before)
{
    return !chain->uncut || !chain->uncut[before - 1];
}
