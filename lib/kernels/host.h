/* Runs a kernel on the host: its stream must be the host's, and its work is cut into ranges, one for each thread. */
#pragma once

#include "lib/kernels/isa.h"
#include "lib/kernels/kernel.h"

/* Returns UNSUPPORTED unless the stream's device is the host. */
sluice_status slc_host_check(const sluice_stream *stream, const char *kernel);

/* Returns into how many parts `count` items are cut: at most stream->threads, with no part but the last below `grain`
 * items. It depends on nothing else, so results for a fixed thread count are repeatable. */
uint32_t slc_host_parts(const sluice_stream *stream, uint64_t count, uint64_t grain);

/* Runs `kernel` on slc_host_parts ranges of 0..count-1, whose borders are multiples of `unit`, and returns when all
 * have ended. With one part it is a plain call: no parallel region is opened, so another thread may have one open at
 * the same time. */
void slc_host_run(const sluice_stream *stream, uint64_t count, uint64_t grain, uint64_t unit, slc_range_kernel *kernel,
                  const void *args);

/* Says whether a kernel should store `bytes` of results at `out` past the cache: they are more than 16 MiB, which the
 * cache would not keep for the reader, and `out` is aligned to 64 bytes. Not for results that replace an operand. */
bool slc_host_streams(const void *out, uint64_t bytes);

/* Adds to gradient[c], for each c below count, the sum of sums[part * stride + c] over the parts, in their order. Adds
 * in fp32 and rounds once; stores instead of adding if fresh != 0. */
void slc_host_add_sums(sluice_dtype dtype, uint64_t count, const float *sums, uint32_t parts, uint64_t stride,
                       void *gradient, int fresh);
