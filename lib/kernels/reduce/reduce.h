/* The sum of one element range over ranks, in rank order: ((s0 + s1) + s2) + ..., in fp32, scaled once, rounded once to
 * the type of the result. What every reduction of block collectives is made of. Elementwise: the same bits for any
 * split. */
#ifndef SLC_KERNEL_REDUCE_H
#define SLC_KERNEL_REDUCE_H

#include "lib/kernels/kernel.h"

#include <sluice/dtype.h>
#include <stdbool.h>

/* sources: `source_count` pointers in rank order to `from`, any of which may be a destination if `from` is `to`.
 * value = scale * sum. accumulate: the destination gets its old value + value, else value (only with 1 destination).
 * `destinations`: `destination_count` pointers to `to`, each gets the result (all-reduce by push).
 * stream_stores: fp32 sums of fp32 bypass the cache (for large results that nobody reads soon). */
sluice_status slc_reduce(slc_stream *stream, uint64_t count, sluice_dtype from, const void *const *sources,
                         uint32_t source_count, float scale, bool accumulate, sluice_dtype to,
                         void *const *destinations, uint32_t destination_count, bool stream_stores);

/* The same in place for int64 and float64 sums of small vectors (norm bins, losses). */
sluice_status slc_reduce_int64(slc_stream *stream, uint64_t count, const int64_t *const *sources, uint32_t source_count,
                               int64_t *const *destinations, uint32_t destination_count);
sluice_status slc_reduce_float64(slc_stream *stream, uint64_t count, const double *const *sources,
                                 uint32_t source_count, double *const *destinations, uint32_t destination_count);

#endif
