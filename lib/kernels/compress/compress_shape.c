/* The geometry of compression: chunks, scales and packets. compress_test.c covers this file. */
#include "lib/kernels/compress/compress.h"

#include "lib/base/integer.h"
#include "lib/base/status.h"
#include "lib/kernels/compress/compress_cpu.h"

enum { RANKS_MAX = 4096 };

sluice_status slc_compress_check(const slc_compress_shape *shape)
{
    if (!shape->ranks || shape->ranks > RANKS_MAX || shape->scale_elements % SLC_COMPRESS_UNIT)
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "compression over %u ranks (1 to %d) with a scale for each %llu elements (a multiple of %d)",
                         shape->ranks, RANKS_MAX, (unsigned long long)shape->scale_elements, SLC_COMPRESS_UNIT);
    return SLUICE_OK;
}

uint64_t slc_compress_chunk(const slc_compress_shape *shape)
{
    uint64_t n = shape->ranks, even = n & -n;
    uint64_t least = even >= 8 ? n : n * (8 / even); /* lcm(n, 8) */
    return slc_round_up(shape->count, n * least) / n;
}

uint64_t slc_compress_scales(const slc_compress_shape *shape)
{
    return shape->scale_elements ? (slc_compress_chunk(shape) + shape->scale_elements - 1) / shape->scale_elements : 1;
}

uint64_t slc_compress_packet_bytes(const slc_compress_shape *shape)
{
    return slc_compress_scales(shape) * sizeof(float) + slc_compress_chunk(shape) / 8;
}

uint64_t slc_compress_stride(const slc_compress_shape *shape)
{
    return slc_round_up(slc_compress_packet_bytes(shape), 64);
}
