/* The steps of compression on a GPU: those of the library's kernels (compress_cuda.cu) and, whole, those of
 * compress_cuda.h. A thread takes grains of sixteen elements, in the host's order: a grain's squares are summed in the
 * host's tree, four grains' sums one after the other, and those go to the block's bins, whose sum has no order
 * (norm.h). So the bits are the host's. */
#pragma once

#include "lib/kernels/compress/compress_cuda.h"
#include "lib/kernels/norm/norm_cuda.cuh"
#include "lib/kernels/norm/norm_result.h"

static_assert(sizeof(gpu_bins) == SLC_COMPRESS_CUDA_SHARED, "the bins are what a block shares");

struct compress_block { /* the elements under one scale, within their chunk */
    uint64_t chunk, number, from, to;
};

static __device__ __forceinline__ compress_block compress_block_at(const slc_compress_cuda_shape &shape, uint64_t block)
{
    compress_block b = {block / shape.scales, block % shape.scales, 0, 0};
    b.from = b.number * shape.scale_elements;
    b.to = b.from + shape.scale_elements < shape.chunk ? b.from + shape.scale_elements : shape.chunk;
    return b;
}

/* A packet may lie anywhere: scales that are not aligned go by bytes. */
static __device__ __forceinline__ float compress_get_scale(const unsigned char *packet, uint64_t number)
{
    const unsigned char *at = packet + number * sizeof(float);
    if ((uintptr_t)at % sizeof(float) == 0) return *(const float *)at;
    return __uint_as_float((uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24);
}
static __device__ __forceinline__ void compress_put_scale(unsigned char *packet, uint64_t number, float scale)
{
    unsigned char *at = packet + number * sizeof(float);
    if ((uintptr_t)at % sizeof(float) == 0) {
        *(float *)at = scale;
        return;
    }
    for (unsigned i = 0; i < sizeof(float); i++) at[i] = (unsigned char)(__float_as_uint(scale) >> 8 * i);
}
static __device__ __forceinline__ unsigned char *compress_packet_bits(unsigned char *packet, uint64_t scales)
{
    return packet + scales * sizeof(float);
}
static __device__ __forceinline__ const unsigned char *compress_packet_bits(const unsigned char *packet,
                                                                            uint64_t scales)
{
    return packet + scales * sizeof(float);
}

/* True if a scale says that the exchange failed: it is infinite or no number. */
static __device__ __forceinline__ bool compress_failed(float scale)
{
    return (__float_as_uint(scale) & 0x7f800000u) == 0x7f800000u;
}

/* Returns the error that the last exchange has left of a sum. */
static __device__ __forceinline__ float compress_error(float sum, float last, bool lost)
{
    return lost ? 0.0f : sum - (sum < 0.0f ? -last : last);
}

/* Adds the error of the last exchange, whose scale was `last`, to the first `left` of b, keeps the sums if `sum` is
 * not NULL, and writes their signs; elements from `left` on become 0. */
static __device__ __forceinline__ void compress_keep(float b[GPU_GRAIN], float *sum, uint64_t left, float last,
                                                     unsigned char *bits)
{
    float kept[GPU_GRAIN] = {};
    const bool lost = compress_failed(last);
    unsigned signs = 0;
    if (sum) gpu_load_grain(sum, true, left, kept);
    for (unsigned i = 0; i < GPU_GRAIN; i++) {
        b[i] = i < left ? b[i] + compress_error(kept[i], last, lost) : 0.0f;
        if (!(b[i] < 0.0f)) signs |= 0x80u >> i % 8 << i / 8 * 8;
    }
    if (sum) gpu_store8(sum, true, left, b);
    if (sum && left > GPU_EACH) gpu_store8(sum + GPU_EACH, true, left - GPU_EACH, b + GPU_EACH);
    bits[0] = (unsigned char)signs;
    if (left > GPU_EACH) bits[1] = (unsigned char)(signs >> 8);
}

/* Adds the squares of a grain to the bins; all threads of a block call it. */
static __device__ __forceinline__ void compress_add_squares(gpu_bins *bins, const float b[GPU_GRAIN])
{
    const double grain = gpu_grain_sum(b);
    double four = grain;
    for (unsigned i = 1; i < 4; i++) four += __shfl_down_sync(0xffffffffu, grain, i);
    if (threadIdx.x % 4 == 0) gpu_bins_add(bins, four);
}

/* Returns the scale of `count` elements, which one thread of the block does after all have met. */
static __device__ float compress_scale(const int64_t *bins, uint64_t count)
{
    const float scale = (float)(norm_result(bins) / sqrt((double)count));
    return compress_failed(scale) ? __uint_as_float(0x7f800000u) : scale;
}

/* Does a block's work in both passes that form a scale: input(at, left, b) gives up to sixteen numbers of the chunk. */
template <class F>
static __device__ __forceinline__ void compress_one_scale(gpu_bins *bins, const compress_block &block, float *sum,
                                                          float *scale, unsigned char *packet, uint64_t scales, F input)
{
    const float last = scale ? *scale : 0.0f;
    unsigned char *bits = compress_packet_bits(packet, scales);
    gpu_bins_clear(bins);
    __syncthreads();
    for (uint64_t tile = block.from; tile < block.to; tile += (uint64_t)SLC_COMPRESS_CUDA_THREADS * GPU_GRAIN) {
        const uint64_t at = tile + (uint64_t)threadIdx.x * GPU_GRAIN;
        float b[GPU_GRAIN] = {};
        if (at < block.to) {
            const uint64_t rest = block.to - at, grain = GPU_GRAIN, left = rest < grain ? rest : grain;
            input(at, left, b);
            compress_keep(b, sum ? sum + at : NULL, left, last, bits + at / 8);
        }
        compress_add_squares(bins, b);
    }
    __syncthreads();
    if (threadIdx.x) return;
    const float formed = compress_scale((const int64_t *)bins->at, block.to - block.from);
    compress_put_scale(packet, block.number, formed);
    if (scale) *scale = formed;
}

static __device__ __forceinline__ void compress_worker(gpu_bins *bins, const slc_compress_cuda_worker &w)
{
    const compress_block block = compress_block_at(w.shape, blockIdx.x);
    const uint64_t base = block.chunk * w.shape.chunk;
    const bool aligned = (uint64_t)w.x % 16 == 0;
    compress_one_scale(bins, block, w.sum ? w.sum + base : NULL, w.scale ? w.scale + blockIdx.x : NULL,
                       w.packets + block.chunk * w.shape.stride, w.shape.scales,
                       [&](uint64_t at, uint64_t, float b[GPU_GRAIN]) {
                           if (base + at < w.shape.count) /* the rest is padding */
                               gpu_load_grain(w.x + base + at, aligned, w.shape.count - base - at, b);
                       });
}

/* Adds what the packet of a rank says of sixteen elements, under its scale number `number`, times `share`. */
static __device__ __forceinline__ void compress_add_opinion(const unsigned char *packet, uint64_t scales,
                                                            uint64_t number, float share, bool first, uint64_t at,
                                                            uint64_t left, float b[GPU_GRAIN])
{
    const unsigned char *bits = compress_packet_bits(packet, scales) + at / 8;
    const float size = compress_get_scale(packet, number) * share;
    const unsigned signs = bits[0] | (left > GPU_EACH ? (unsigned)bits[1] << 8 : 0);
    for (unsigned i = 0; i < GPU_GRAIN; i++) {
        const float term = signs >> i / 8 * 8 & (0x80u >> i % 8) ? size : -size;
        b[i] = first ? term : b[i] + term;
    }
}

static __device__ __forceinline__ void compress_server(gpu_bins *bins, const slc_compress_cuda_server &s)
{
    const compress_block block = compress_block_at(s.shape, blockIdx.x);
    const float share = (float)(1.0 / s.shape.ranks);
    compress_one_scale(bins, block, s.sum, s.scale ? s.scale + block.number : NULL, s.result, s.shape.scales,
                       [&](uint64_t at, uint64_t left, float b[GPU_GRAIN]) {
                           for (uint32_t r = 0; r < s.shape.ranks; r++)
                               compress_add_opinion(r == s.rank ? s.own : s.packets + r * s.shape.stride,
                                                    s.shape.scales, block.number, share, r == 0, at, left, b);
                       });
}

static __device__ __forceinline__ void compress_results(const slc_compress_cuda_results &r)
{
    const uint64_t step = (uint64_t)gridDim.x * SLC_COMPRESS_CUDA_THREADS * GPU_EACH;
    const bool aligned = (uint64_t)r.out % 16 == 0;
    for (uint64_t i = ((uint64_t)blockIdx.x * SLC_COMPRESS_CUDA_THREADS + threadIdx.x) * GPU_EACH; i < r.shape.count;
         i += step) {
        const uint64_t at = i % r.shape.chunk;
        const unsigned char *packet = r.results + i / r.shape.chunk * r.shape.stride;
        const float size = compress_get_scale(packet, at / r.shape.scale_elements) * r.factor;
        const unsigned signs = compress_packet_bits(packet, r.shape.scales)[at / 8];
        float out[GPU_EACH];
        for (unsigned e = 0; e < GPU_EACH; e++) out[e] = signs & (0x80u >> e) ? size : -size;
        gpu_store8(r.out + i, aligned, r.shape.count - i, out);
    }
}
