/* One row for each sequence: its first, or the mean of the rows after the first (BEiT's mean pooling). x:
 * [batch][tokens][channels], y: [batch][channels]. */
#ifndef SLC_KERNEL_POOL_H
#define SLC_KERNEL_POOL_H

#include "lib/kernels/kernel.h"

#include <sluice/dtype.h>

typedef enum { SLC_POOL_FIRST, SLC_POOL_MEAN_OF_REST /* needs tokens > 1 */ } slc_pool_kind;

sluice_status slc_pool_forward(slc_stream *stream, sluice_dtype dtype, slc_pool_kind kind, uint64_t batch,
                               uint64_t tokens, uint64_t channels, const void *x, void *y);
/* Stores all of dx; rows that do not count in y get 0. */
sluice_status slc_pool_backward(slc_stream *stream, sluice_dtype dtype, slc_pool_kind kind, uint64_t batch,
                                uint64_t tokens, uint64_t channels, const void *dy, void *dx);

#endif
