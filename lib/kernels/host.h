/* How a kernel runs on the host: its stream must be the host's, and its work is cut in ranges, one a thread. */
#ifndef SLC_KERNEL_HOST_H
#define SLC_KERNEL_HOST_H

#include "lib/kernels/isa.h"
#include "lib/kernels/kernel.h"

/* UNSUPPORTED unless the stream's device is the host. */
sluice_status slc_host_check(const slc_stream *stream, const char *kernel);

/* Into how many parts `count` items are cut: at most stream->threads, and no part but the last below `grain` items.
 * Depends on nothing else, so results for a fixed thread count are repeatable. */
uint32_t slc_host_parts(const slc_stream *stream, uint64_t count, uint64_t grain);

/* Runs `kernel` on that many ranges of 0..count-1, whose borders are multiples of `unit`. With one part it is a plain
 * call: no parallel region is opened, so it may be used beside another thread's. */
void slc_host_run(const slc_stream *stream, uint64_t count, uint64_t grain, uint64_t unit, slc_range_kernel *kernel,
                  const void *args);

/* Whether a kernel stores `bytes` of results at `out` past the cache: there are more than the cache would keep for who
 * reads them, and sixteen elements of the smaller type are aligned. Not for results in place of an operand. */
bool slc_host_streams(const void *out, uint64_t bytes);

/* gradient[c] (+)= the sum over parts, in their order, of sums[part * stride + c]; c below count. Added in fp32 and
 * rounded once; stored when fresh != 0. */
void slc_host_add_sums(sluice_dtype dtype, uint64_t count, const float *sums, uint32_t parts, uint64_t stride,
                       void *gradient, int fresh);

#endif
