/* Each function passes over its arrays once. lib/optim/onebit/onebit_lamb_test.c covers this file. */
#include "lib/kernels/compress/flat_cpu.h"

#include "lib/kernels/compress/packets_cpu.h"
#include "lib/kernels/lanes.h"

LANES_INLINE void write(sluice_dtype gradient, sluice_dtype momentum, const slc_flat_args *a, uint64_t first,
                        uint64_t last)
{
    const slc_compress_input *in = &a->input;
    const lanes gradient_factor = lanes_set((float)in->gradient_factor), factor = lanes_set((float)in->factor),
                rest = lanes_set((float)in->rest);
    for (uint64_t at = first; at < last; at += LANES) {
        lanes g = lanes_mul(gradient_factor, lanes_load_some_as(gradient, in->gradient, at, last - at, 0.0f));
        lanes m = lanes_load_some_as(momentum, in->momentum, at, last - at, 0.0f);
        lanes_store_some(a->out + at, last - at, lanes_add(lanes_mul(factor, m), lanes_mul(rest, g)));
    }
}

LANES_KERNEL_OF_TYPES(slc_flat_write_range, slc_flat_args, input.gradient_dtype, input.momentum_dtype, write)

void SLC_ISA(slc_flat_read_range)(const void *context, uint32_t part, uint64_t first, uint64_t last)
{
    (void)part;
    enum { TILE = 512 };
    const slc_flat_args *a = context;
    for (uint64_t at = first; at < last; at += TILE) {
        float buffer[TILE + PACKETS_SLACK];
        uint64_t count = last - at < TILE ? last - at : TILE;
        memcpy(a->out + at, packets_decode(&a->packets, a->first + at, count, 1, buffer), count * sizeof(float));
    }
}
