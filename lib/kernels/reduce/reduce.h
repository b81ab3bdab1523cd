/* The sum of one element range over ranks, in rank order: ((s0 + s1) + s2) + ..., in fp32, scaled once, rounded once to
 * the type of the result. Every reduction of block collectives is made of it. It is elementwise: any split gives the
 * same bits. */
#ifndef SLC_KERNEL_REDUCE_H
#define SLC_KERNEL_REDUCE_H

#include "lib/kernels/kernel.h"

#include <sluice/dtype.h>
#include <stdbool.h>

/* sources: `source_count` pointers in rank order to elements of type `from`; any of them may be a destination if `from`
 * is `to`. value = scale * sum. accumulate: the destination becomes its old value + value, else value (only with 1
 * destination). destinations: `destination_count` pointers to elements of type `to`, each of which gets the result
 * (all-reduce by push). stream_stores: on a host the results for 1 destination bypass the cache (for results that are
 * too large for it and replace no source; several destinations are stored as ever). Errors: ARGUMENT (no source or
 * destination, accumulate with several destinations). */
sluice_status slc_reduce(sluice_stream *stream, uint64_t count, sluice_dtype from, const void *const *sources,
                         uint32_t source_count, float scale, bool accumulate, sluice_dtype to,
                         void *const *destinations, uint32_t destination_count, bool stream_stores);

/* Sum small vectors of int64 or float64 likewise (norm bins, losses), on the caller's thread; a source may be a
 * destination. */
sluice_status slc_reduce_int64(sluice_stream *stream, uint64_t count, const int64_t *const *sources,
                               uint32_t source_count, int64_t *const *destinations, uint32_t destination_count);
sluice_status slc_reduce_float64(sluice_stream *stream, uint64_t count, const double *const *sources,
                                 uint32_t source_count, double *const *destinations, uint32_t destination_count);

#endif
