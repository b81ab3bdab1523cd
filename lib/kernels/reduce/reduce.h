/* The sum of one element range over ranks, in rank order: ((s0 + s1) + s2) + ..., fp32, scaled once, rounded once. What
 * every reduction of block collectives is made of. Elementwise: the same bits for any split. */
#ifndef SLC_KERNEL_REDUCE_H
#define SLC_KERNEL_REDUCE_H

#include "lib/kernels/kernel.h"

#include <stdbool.h>

/* sources: `source_count` pointers in rank order, any of which may be a destination.
 * value = scale * sum. accumulate: each destination gets its old value + value, else value (only with 1 destination).
 * `destinations`: `destination_count` pointers, each gets the result (all-reduce by push).
 * stream_stores: results bypass the cache (for large results that nobody reads soon). */
sluice_status slc_reduce(slc_stream *stream, uint64_t count, const float *const *sources, uint32_t source_count,
                         float scale, bool accumulate, float *const *destinations, uint32_t destination_count,
                         bool stream_stores);

/* The same in place for int64 and float64 sums of small vectors (norm bins, losses). */
sluice_status slc_reduce_int64(slc_stream *stream, uint64_t count, const int64_t *const *sources, uint32_t source_count,
                               int64_t *const *destinations, uint32_t destination_count);
sluice_status slc_reduce_float64(slc_stream *stream, uint64_t count, const double *const *sources,
                                 uint32_t source_count, double *const *destinations, uint32_t destination_count);

#endif
