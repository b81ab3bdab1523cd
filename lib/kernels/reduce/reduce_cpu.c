/* Sixteen elements of every source are read before any destination is written, so a destination may be a source. The
 * loop is written once and specialised for the types and for the numbers of sources that hosts have.
 * reduce_test.c covers this file. */
#include "lib/kernels/reduce/reduce.h"

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

/* Thirty-two elements of bf16 at a time, those at even places apart from those at odd ones: a register holds both as
 * they lie in memory, so that none is spread out or joined again. */
LANES_INLINE void pairs(const slc_reduce_args *args, uint32_t source_count, bool one, bool stream, uint64_t first,
                        uint64_t whole)
{
    const uint32_t destination_count = one ? 1 : args->destination_count;
    const lanes scale = lanes_set(args->scale);
    for (uint64_t at = first; at < whole; at += 2 * LANES) {
        lanes even, odd, e, o;
        lanes_load_pair_bf16((const uint16_t *)args->sources[0] + at, &even, &odd);
        for (uint32_t s = 1; s < source_count; s++) {
            lanes_load_pair_bf16((const uint16_t *)args->sources[s] + at, &e, &o);
            even = lanes_add(even, e), odd = lanes_add(odd, o);
        }
        even = lanes_mul(scale, even), odd = lanes_mul(scale, odd);
        if (args->accumulate) {
            lanes_load_pair_bf16((const uint16_t *)args->destinations[0] + at, &e, &o);
            even = lanes_add(e, even), odd = lanes_add(o, odd);
        }
        for (uint32_t d = 0; d < destination_count; d++)
            lanes_store_pair_bf16((uint16_t *)args->destinations[d] + at, even, odd, stream);
    }
}

/* Sixteen elements at a time; `whole` is a multiple of LANES after `first`. With `stream`, which goes with `one`, the
 * destination is 64-byte aligned at `first`. */
LANES_INLINE void body(const slc_reduce_args *args, sluice_dtype from, sluice_dtype to, uint32_t source_count, bool one,
                       bool stream, uint64_t first, uint64_t whole)
{
    uint32_t destination_count = one ? 1 : args->destination_count;
    void *destination = args->destinations[0];
    if (from == SLUICE_BF16 && to == SLUICE_BF16) {
        const uint64_t paired = first + (whole - first) / (2 * LANES) * (2 * LANES);
        pairs(args, source_count, one, stream, first, paired);
        first = paired;
    }
    for (uint64_t at = first; at < whole; at += LANES) {
        lanes value = value_at(args, from, to, source_count, at, LANES);
        for (uint32_t d = 0; d < destination_count; d++) {
            void *base = one ? destination : args->destinations[d];
            lanes_stream_some_as(to, base, at, LANES, value, stream);
        }
    }
}

LANES_INLINE void by_sources(const slc_reduce_args *args, sluice_dtype from, sluice_dtype to, bool one, bool stream,
                             uint64_t first, uint64_t whole)
{
    switch (args->source_count) {
    case 2: body(args, from, to, 2, one, stream, first, whole); break;
    case 3: body(args, from, to, 3, one, stream, first, whole); break;
    case 4: body(args, from, to, 4, one, stream, first, whole); break;
    default: body(args, from, to, args->source_count, one, stream, first, whole);
    }
}

LANES_INLINE void by_destinations(sluice_dtype from, sluice_dtype to, const slc_reduce_args *args, bool stream,
                                  uint64_t first, uint64_t whole)
{
    if (stream)
        by_sources(args, from, to, true, true, first, whole);
    else if (args->destination_count == 1)
        by_sources(args, from, to, true, false, first, whole);
    else
        by_sources(args, from, to, false, false, first, whole);
}

/* The number of elements before the destination's first 64-byte border at or after `first`. */
static uint64_t elements_to_border(const slc_reduce_args *args, uint64_t first)
{
    const uint64_t bytes = args->to == SLUICE_BF16 ? sizeof(uint16_t) : sizeof(float);
    return -((uintptr_t)args->destinations[0] + first * bytes) % 64 / bytes;
}

void SLC_ISA(slc_reduce_range)(const void *context, uint32_t part, uint64_t first, uint64_t last)
{
    (void)part;
    const slc_reduce_args *args = context;
    const bool stream = args->stream_stores && args->destination_count == 1;
    if (stream) {
        uint64_t head = elements_to_border(args, first);
        if (head > last - first) head = last - first;
        for (uint64_t left = head; left; left -= left < LANES ? left : LANES) some(args, first + head - left, left);
        first += head;
    }
    uint64_t whole = first + (last - first) / LANES * LANES;
    LANES_BY_TYPES(args->from, args->to, by_destinations, args, stream, first, whole);
    if (whole < last) some(args, whole, last - whole);
    if (stream) lanes_stream_end();
}
