/* The parts of AdamW that LAMB uses too: many ranges in one launch, and the moments of eight elements. The operations
 * are those of moments.h, in their order. */
#pragma once

#include "lib/kernels/adamw/adamw_cpu.h"
#include "lib/kernels/gpu.cuh"

/* The ranges of a launch, which go among the arguments of its kernel: those may have 4 KiB. Each begins at a block. */
template <uint32_t MOST> struct gpu_ranges {
    uint32_t count;
    uint32_t first_block[MOST];
    slc_adamw_range at[MOST];
};

/* Fills `out` with ranges from *next on, without empty ones, and calls with(place, number) for each range that it
 * takes; *next moves on. Returns the number of blocks; 0: no range is left. */
template <uint32_t MOST, class F>
static uint32_t gpu_ranges_take(gpu_ranges<MOST> *out, uint64_t block_elements, uint32_t range_count,
                                const slc_adamw_range *ranges, uint32_t *next, F with)
{
    uint64_t blocks = 0;
    out->count = 0;
    for (; *next < range_count && out->count < MOST; ++*next) {
        const slc_adamw_range &range = ranges[*next];
        if (!range.count) continue;
        with(out->count, *next);
        out->first_block[out->count] = (uint32_t)blocks;
        out->at[out->count++] = range;
        blocks += (range.count + block_elements - 1) / block_elements;
    }
    return (uint32_t)blocks;
}

/* Returns the place of the range that this block works on. */
template <uint32_t MOST> static __device__ __forceinline__ uint32_t gpu_range_of_block(const gpu_ranges<MOST> &ranges)
{
    uint32_t place = 0;
    while (place + 1 < ranges.count && ranges.first_block[place + 1] <= blockIdx.x) place++;
    return place;
}

static __device__ __forceinline__ bool gpu_range_aligned(const slc_adamw_range &r)
{
    return ((uintptr_t)r.gradient | (uintptr_t)r.value | (uintptr_t)r.exp_avg | (uintptr_t)r.exp_avg_sq |
            (uintptr_t)r.rounded) %
               16 ==
           0;
}

/* Eight elements of a range; those behind its end are 0. */
struct gpu_moments {
    float w[GPU_EACH], m[GPU_EACH], v[GPU_EACH];
    float move[GPU_EACH]; /* corrected m / (sqrt(corrected v) + epsilon), times the learning rate for AdamW */
};

template <class G>
static __device__ __forceinline__ void gpu_moments_load(const slc_adamw_factors &f, const slc_adamw_range &r,
                                                        bool aligned, uint64_t at, uint64_t left, gpu_moments *x)
{
    float g[GPU_EACH];
    gpu_load8((const G *)r.gradient + at, aligned, left, 0.0f, g);
    gpu_load8(r.value + at, aligned, left, 0.0f, x->w);
    gpu_load8(r.exp_avg + at, aligned, left, 0.0f, x->m);
    gpu_load8(r.exp_avg_sq + at, aligned, left, 0.0f, x->v);
    for (int e = 0; e < GPU_EACH; e++) {
        g[e] = f.gradient_factor * g[e];
        x->m[e] = f.beta1 * x->m[e] + f.rest1 * g[e];
        x->v[e] = f.beta2 * x->v[e] + f.rest2 * g[e] * g[e];
        x->move[e] = f.correction * x->m[e] / (sqrtf(x->v[e]) * f.rescale + f.epsilon);
    }
}

static __device__ __forceinline__ void gpu_moments_store(const slc_adamw_range &r, bool aligned, uint64_t at,
                                                         uint64_t left, const gpu_moments &x)
{
    gpu_store8(r.value + at, aligned, left, x.w);
    gpu_store8(r.exp_avg + at, aligned, left, x.m);
    gpu_store8(r.exp_avg_sq + at, aligned, left, x.v);
    if (r.rounded) gpu_store8((gpu_bf16 *)r.rounded + at, aligned, left, x.w);
}
