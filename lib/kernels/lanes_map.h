/* The loop of elementwise kernels: out[i] = operation(a[i], b[i]), written once for both types, with or without stores
 * past the cache. Types and operation are constants wherever it is inlined. `first` is a multiple of sixteen. */
#pragma once

#include "lib/kernels/lanes.h"

typedef struct {
    const void *a, *b; /* if the operation ignores b, the load costs nothing, and b is a */
    void *out;         /* may be a or b if `from` is `to` */
    bool stream;       /* result of slc_host_streams */
} lanes_map_args;

LANES_INLINE void lanes_map(sluice_dtype from, sluice_dtype to, const lanes_map_args *args, uint64_t first,
                            uint64_t last, lanes (*operation)(lanes a, lanes b))
{
    const lanes_map_args m = *args;
    uint64_t at = first;
    if (from == SLUICE_BF16 && to == SLUICE_BF16) {
        const bool stream = m.stream && first % (2 * LANES) == 0;
        for (; at + 2 * LANES <= last; at += 2 * LANES) {
            lanes a[2], b[2];
            lanes_load_pair_bf16((const uint16_t *)m.a + at, &a[0], &a[1]);
            lanes_load_pair_bf16((const uint16_t *)m.b + at, &b[0], &b[1]);
            lanes_store_pair_bf16((uint16_t *)m.out + at, operation(a[0], b[0]), operation(a[1], b[1]), stream);
        }
    } else {
        for (; at + LANES <= last; at += LANES)
            lanes_stream_some_as(to, m.out, at, LANES,
                                 operation(lanes_load_as(from, m.a, at), lanes_load_as(from, m.b, at)), m.stream);
    }
    for (; at < last; at += LANES)
        lanes_store_some_as(to, m.out, at, last - at,
                            operation(lanes_load_some_as(from, m.a, at, last - at, 0.0f),
                                      lanes_load_some_as(from, m.b, at, last - at, 0.0f)));
    if (m.stream) lanes_stream_end();
}
