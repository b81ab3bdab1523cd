/* The loop of elementwise kernels: out[i] = operation(a[i], b[i]), written once for both types, with or without stores
 * past the cache. Types and operation are constants where it is inlined. `first` is a multiple of sixteen. */
#ifndef SLC_KERNEL_LANES_MAP_H
#define SLC_KERNEL_LANES_MAP_H

#include "lib/kernels/lanes.h"

typedef struct {
    const void *a, *b; /* an operation that does not use b costs no load of it; it is then a */
    void *out;         /* may be a or b, where `from` is `to` */
    bool stream;       /* slc_host_streams */
} lanes_map_args;

LANES_INLINE void lanes_map(sluice_dtype from, sluice_dtype to, const lanes_map_args *args, uint64_t first,
                            uint64_t last, lanes (*operation)(lanes a, lanes b))
{
    const lanes_map_args m = *args;
    uint64_t at = first, whole = first + (last - first) / LANES * LANES;
    if (m.stream) {
        for (; at < whole; at += LANES)
            lanes_stream_some_as(to, m.out, at, LANES,
                                 operation(lanes_load_as(from, m.a, at), lanes_load_as(from, m.b, at)), true);
        lanes_stream_end();
    }
    for (; at < whole; at += LANES)
        lanes_store_as(to, m.out, at, operation(lanes_load_as(from, m.a, at), lanes_load_as(from, m.b, at)));
    if (at < last)
        lanes_store_some_as(to, m.out, at, last - at,
                            operation(lanes_load_some_as(from, m.a, at, last - at, 0.0f),
                                      lanes_load_some_as(from, m.b, at, last - at, 0.0f)));
}

#endif
