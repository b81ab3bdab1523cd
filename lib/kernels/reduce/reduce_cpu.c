/* Sixteen elements of every source are read before any destination is written, so a destination may be a source. The
 * loop is written once and specialised for the types and for the numbers of sources that hosts have. */
#include "lib/kernels/reduce/reduce_cpu.h"

#include "lib/kernels/lanes.h"

LANES_INLINE lanes value_at(const slc_reduce_args *args, sluice_dtype from, sluice_dtype to, uint32_t source_count,
                            uint64_t at, uint64_t left)
{
    lanes sum = lanes_load_some_as(from, args->sources[0], at, left, 0.0f);
    for (uint32_t s = 1; s < source_count; s++)
        sum = lanes_add(sum, lanes_load_some_as(from, args->sources[s], at, left, 0.0f));
    lanes value = lanes_mul(lanes_set(args->scale), sum);
    return args->accumulate ? lanes_add(lanes_load_some_as(to, args->destinations[0], at, left, 0.0f), value) : value;
}

static void some(const slc_reduce_args *args, uint64_t at, uint64_t left)
{
    lanes value = value_at(args, args->from, args->to, args->source_count, at, left);
    for (uint32_t d = 0; d < args->destination_count; d++)
        lanes_store_some_as(args->to, args->destinations[d], at, left, value);
}

/* first..last-1 is a multiple of LANES long; with `stream` every destination is fp32 and 64-byte aligned there. */
LANES_INLINE void body(const slc_reduce_args *args, sluice_dtype from, sluice_dtype to, uint32_t source_count, bool one,
                       bool stream, uint64_t first, uint64_t last)
{
    uint32_t destination_count = one ? 1 : args->destination_count;
    void *destination = args->destinations[0];
    for (uint64_t at = first; at < last; at += LANES) {
        lanes value = value_at(args, from, to, source_count, at, LANES);
        for (uint32_t d = 0; d < destination_count; d++) {
            void *base = one ? destination : args->destinations[d];
            if (stream)
                lanes_stream((float *)base + at, value);
            else
                lanes_store_as(to, base, at, value);
        }
    }
}

LANES_INLINE void by_sources(const slc_reduce_args *args, sluice_dtype from, sluice_dtype to, bool one, bool stream,
                             uint64_t first, uint64_t last)
{
    switch (args->source_count) {
    case 2: body(args, from, to, 2, one, stream, first, last); break;
    case 3: body(args, from, to, 3, one, stream, first, last); break;
    case 4: body(args, from, to, 4, one, stream, first, last); break;
    default: body(args, from, to, args->source_count, one, stream, first, last);
    }
}

LANES_INLINE void by_destinations(const slc_reduce_args *args, sluice_dtype from, sluice_dtype to, bool stream,
                                  uint64_t first, uint64_t last)
{
    if (args->destination_count == 1)
        by_sources(args, from, to, true, stream, first, last);
    else
        by_sources(args, from, to, false, stream, first, last);
}

static void by_types(const slc_reduce_args *args, bool stream, uint64_t first, uint64_t last)
{
    if (stream)
        by_destinations(args, SLUICE_FP32, SLUICE_FP32, true, first, last);
    else if (args->from == SLUICE_FP32 && args->to == SLUICE_FP32)
        by_destinations(args, SLUICE_FP32, SLUICE_FP32, false, first, last);
    else if (args->from == SLUICE_FP32)
        by_destinations(args, SLUICE_FP32, SLUICE_BF16, false, first, last);
    else if (args->to == SLUICE_FP32)
        by_destinations(args, SLUICE_BF16, SLUICE_FP32, false, first, last);
    else
        by_destinations(args, SLUICE_BF16, SLUICE_BF16, false, first, last);
    if (stream) lanes_stream_end();
}

/* Returns the number of elements before the first 64-byte border of every (fp32) destination; `count` if the
 * destinations have no common one. */
static uint64_t elements_to_border(const slc_reduce_args *args, uint64_t first, uint64_t count)
{
    uintptr_t begin = first * sizeof(float), offset = ((uintptr_t)args->destinations[0] + begin) % 64;
    for (uint32_t d = 1; d < args->destination_count; d++)
        if (((uintptr_t)args->destinations[d] + begin) % 64 != offset) return count;
    uint64_t head = offset ? (64 - offset) / sizeof(float) : 0;
    return head < count ? head : count;
}

void SLC_ISA(slc_reduce_range)(const void *context, uint32_t part, uint64_t first, uint64_t last)
{
    (void)part;
    const slc_reduce_args *args = context;
    bool stream = args->stream_stores && args->from == SLUICE_FP32 && args->to == SLUICE_FP32;
    if (stream) {
        uint64_t head = elements_to_border(args, first, last - first);
        if (head == last - first)
            stream = false;
        else if (head)
            some(args, first, head);
        if (stream) first += head;
    }
    uint64_t whole = first + (last - first) / LANES * LANES;
    by_types(args, stream, first, whole);
    if (whole < last) some(args, whole, last - whole);
}
