/* Sixteen elements of every source are read before any destination is written, so a destination may be a source. The
 * loop is written once and specialised for the numbers of sources that hosts have. */
#include "lib/kernels/reduce/reduce_cpu.h"

#include "lib/kernels/lanes.h"

LANES_INLINE lanes load(const float *p, uint64_t left)
{
    return left >= LANES ? lanes_load(p) : lanes_load_tail(p, left, 0.0f);
}

LANES_INLINE lanes value_at(const slc_reduce_args *args, uint32_t source_count, uint64_t at, uint64_t left)
{
    lanes sum = load(args->sources[0] + at, left);
    for (uint32_t s = 1; s < source_count; s++) sum = lanes_add(sum, load(args->sources[s] + at, left));
    lanes value = lanes_mul(lanes_set(args->scale), sum);
    return args->accumulate ? lanes_add(load(args->destinations[0] + at, left), value) : value;
}

static void some(const slc_reduce_args *args, uint64_t at, uint64_t left)
{
    lanes value = value_at(args, args->source_count, at, left);
    for (uint32_t d = 0; d < args->destination_count; d++) lanes_store_some(args->destinations[d] + at, left, value);
}

/* first..last-1 is a multiple of LANES long; with `stream` every destination is aligned there. */
LANES_INLINE void body(const slc_reduce_args *args, uint32_t source_count, bool one, bool stream, uint64_t first,
                       uint64_t last)
{
    uint32_t destination_count = one ? 1 : args->destination_count;
    float *destination = args->destinations[0];
    for (uint64_t at = first; at < last; at += LANES) {
        lanes value = value_at(args, source_count, at, LANES);
        for (uint32_t d = 0; d < destination_count; d++) {
            float *to = (one ? destination : args->destinations[d]) + at;
            if (stream)
                lanes_stream(to, value);
            else
                lanes_store(to, value);
        }
    }
}

LANES_INLINE void by_sources(const slc_reduce_args *args, bool one, bool stream, uint64_t first, uint64_t last)
{
    switch (args->source_count) {
    case 2: body(args, 2, one, stream, first, last); break;
    case 3: body(args, 3, one, stream, first, last); break;
    case 4: body(args, 4, one, stream, first, last); break;
    default: body(args, args->source_count, one, stream, first, last);
    }
}

/* Elements before the first 64-byte border of every destination; count when they have no common one. */
static uint64_t elements_to_border(const slc_reduce_args *args, uint64_t first, uint64_t count)
{
    uintptr_t offset = (uintptr_t)(args->destinations[0] + first) % 64;
    for (uint32_t d = 1; d < args->destination_count; d++)
        if ((uintptr_t)(args->destinations[d] + first) % 64 != offset) return count;
    uint64_t head = offset ? (64 - offset) / sizeof(float) : 0;
    return head < count ? head : count;
}

void SLC_ISA(slc_reduce_range)(const void *context, uint32_t part, uint64_t first, uint64_t last)
{
    (void)part;
    const slc_reduce_args *args = context;
    bool stream = args->stream_stores;
    if (stream) {
        uint64_t head = elements_to_border(args, first, last - first);
        if (head == last - first)
            stream = false;
        else if (head)
            some(args, first, head);
        if (stream) first += head;
    }
    uint64_t whole = first + (last - first) / LANES * LANES;
    bool one = args->destination_count == 1;
    if (stream) {
        if (one)
            by_sources(args, true, true, first, whole);
        else
            by_sources(args, false, true, first, whole);
        lanes_stream_end();
    } else {
        if (one)
            by_sources(args, true, false, first, whole);
        else
            by_sources(args, false, false, first, whole);
    }
    if (whole < last) some(args, whole, last - whole);
}
