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

#endif
