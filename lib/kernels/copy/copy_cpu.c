/* Whole lines of the destination go past the cache; what is left at either end of the range goes through it.
 * copy_test.c covers this file. */
#include "lib/kernels/copy/copy.h"

#include "lib/kernels/lanes.h"

enum { LINE = LANES * sizeof(float) };

void SLC_ISA(slc_copy_range)(const void *context, uint32_t part, uint64_t first, uint64_t last)
{
    (void)part;
    const slc_copy_args *args = context;
    char *dst = args->dst;
    const char *src = args->src;
    uint64_t at = first, head = -(uintptr_t)(dst + first) % LINE;
    if (head > last - first) head = last - first;
    memcpy(dst + at, src + at, head);
    for (at += head; at + LINE <= last; at += LINE) {
        lanes line; /* the source may lie at any address, also between two floats */
        memcpy(&line, src + at, sizeof line);
        lanes_stream((float *)(void *)(dst + at), line);
    }
    memcpy(dst + at, src + at, last - at);
    lanes_stream_end();
}
