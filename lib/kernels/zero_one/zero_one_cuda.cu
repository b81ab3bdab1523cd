/* The operations of zero_one_cpu.c, in their order, eight elements a thread. */
#include "lib/kernels/zero_one/zero_one_cpu.h"

#include "lib/kernels/adamw/adamw_cuda.cuh"
#include "lib/kernels/compress/packets_cuda.cuh"

/* A tensor's arrays; those that are NULL are not there. */
struct tensor_arrays {
    slc_zero_one_range range;
    bool aligned;
};

static tensor_arrays arrays_of(const slc_zero_one_range &r)
{
    const bool aligned = gpu_aligned(r.value) && gpu_aligned(r.exp_avg) && gpu_aligned(r.exp_avg_sq) &&
                         gpu_aligned(r.rounded) && gpu_aligned(r.accumulator) && gpu_aligned(r.kept);
    return {r, aligned};
}

static __device__ __forceinline__ void store_value(const tensor_arrays &t, uint64_t i, uint64_t left,
                                                   const float w[GPU_EACH])
{
    gpu_store8(t.range.value + i, t.aligned, left, w);
    if (t.range.rounded) gpu_store8((gpu_bf16 *)t.range.rounded + i, t.aligned, left, w);
}

/* sqrt(corrected v) + epsilon */
static __device__ __forceinline__ float below(const slc_adamw_factors &f, float v)
{
    return sqrtf(v) * f.rescale + f.epsilon;
}

static __device__ __forceinline__ float masked(bool mask, float v, float x)
{
    return mask && v == 0.0f ? 0.0f : x;
}

/* ---- From an exchange ---- */

struct gradient_elements {
    slc_adamw_factors factors;
    tensor_arrays to;
    slc_compress_packets packets;
    uint64_t first;
    bool *finite;
    const sluice_step_words *words;
    __device__ void operator()(uint64_t i, uint64_t left) const
    {
        const slc_adamw_factors &f = factors;
        const slc_zero_one_range &r = to.range;
        float g[GPU_EACH], v[GPU_EACH], m[GPU_EACH], w[GPU_EACH];
        const uint64_t at = first + i;
        if (slc_compress_skips(words) || !gpu_decode8(packets, at, finite, g)) return;
        gpu_load8(r.exp_avg_sq + at, to.aligned, left, 0.0f, v);
        gpu_load8(r.value + at, to.aligned, left, 0.0f, w);
        gpu_load8(r.exp_avg + at, to.aligned, left, 0.0f, m);
        for (int e = 0; e < GPU_EACH; e++) {
            m[e] = f.beta1 * m[e] + f.rest1 * masked(r.mask, v[e], g[e]);
            w[e] = w[e] - f.decay * w[e] - f.correction * m[e] / below(f, v[e]);
        }
        gpu_store8(r.exp_avg + at, to.aligned, left, m);
        store_value(to, at, left, w);
    }
};

sluice_status slc_zero_one_gradient_many_cuda(sluice_stream *stream, uint32_t count,
                                              const slc_zero_one_packets_args *args)
{
    return gpu_launch_many<gradient_elements>(
        stream, "zero_one_gradient", count, [&](uint32_t k) { return args[k].count; },
        [&](uint32_t k) {
            const slc_zero_one_packets_args &a = args[k];
            return gradient_elements{a.factors, arrays_of(a.range), a.packets, a.first, a.finite, a.words};
        });
}

struct exchanged_elements {
    slc_adamw_factors factors;
    float momentum_factor, value_factor;
    tensor_arrays to;
    slc_compress_packets packets;
    uint64_t first;
    bool *finite;
    const sluice_step_words *words;

    /* Loads the values before the interval. */
    __device__ void load_before(uint64_t at, uint64_t left, float before[GPU_EACH]) const
    {
        const slc_zero_one_range &r = to.range;
        float u[GPU_EACH];
        if (!r.begins && r.kept) {
            gpu_load8(r.kept + at, to.aligned, left, 0.0f, before);
            return;
        }
        gpu_load8(r.value + at, to.aligned, left, 0.0f, before);
        if (r.begins) return;
        gpu_load8(r.accumulator + at, to.aligned, left, 0.0f, u);
        for (int e = 0; e < GPU_EACH; e++) before[e] = before[e] - u[e];
    }
    __device__ void operator()(uint64_t i, uint64_t left) const
    {
        const slc_zero_one_range &r = to.range;
        float y[GPU_EACH], v[GPU_EACH], w[GPU_EACH];
        const uint64_t at = first + i;
        if (slc_compress_skips(words) || !gpu_decode8(packets, at, finite, y)) return;
        gpu_load8(r.exp_avg_sq + at, to.aligned, left, 0.0f, v);
        load_before(at, left, w);
        for (int e = 0; e < GPU_EACH; e++) {
            y[e] = masked(r.mask, v[e], y[e]);
            w[e] = value_factor * w[e] + y[e] / below(factors, v[e]);
            y[e] = momentum_factor * y[e];
        }
        gpu_store8(r.exp_avg + at, to.aligned, left, y);
        store_value(to, at, left, w);
        if (!r.clears) return;
        const float zeros[GPU_EACH] = {};
        gpu_store8(r.accumulator + at, to.aligned, left, zeros);
    }
};

sluice_status slc_zero_one_exchanged_many_cuda(sluice_stream *stream, uint32_t count,
                                               const slc_zero_one_packets_args *args)
{
    return gpu_launch_many<exchanged_elements>(
        stream, "zero_one_exchanged", count, [&](uint32_t k) { return args[k].count; },
        [&](uint32_t k) {
            const slc_zero_one_packets_args &a = args[k];
            return exchanged_elements{a.factors, a.momentum_factor, a.value_factor, arrays_of(a.range),
                                      a.packets, a.first,           a.finite,       a.words};
        });
}

/* ---- From this rank's own gradient ---- */

static __device__ __forceinline__ bool is_odd(float x)
{
    return (__float_as_uint(x) & 0x7f800000u) == 0x7f800000u;
}

template <class G> struct local_elements {
    slc_adamw_factors factors;
    tensor_arrays to;
    const G *gradient;
    bool gradient_aligned;
    const sluice_step_words *words;
    __device__ void operator()(uint64_t i, uint64_t left) const
    {
        const slc_zero_one_range &r = to.range;
        slc_adamw_factors f = factors;
        float g[GPU_EACH], v[GPU_EACH], m[GPU_EACH], w[GPU_EACH], u[GPU_EACH] = {};
        bool bad = false;
        if (!slc_adamw_heed_words(words, &f)) return;
        gpu_load8(gradient + i, gradient_aligned, left, 0.0f, g);
        gpu_load8(r.exp_avg_sq + i, to.aligned, left, 0.0f, v);
        gpu_load8(r.exp_avg + i, to.aligned, left, 0.0f, m);
        gpu_load8(r.value + i, to.aligned, left, 0.0f, w);
        if (!r.begins) gpu_load8(r.accumulator + i, to.aligned, left, 0.0f, u);
        if (r.begins && r.kept) gpu_store8(r.kept + i, to.aligned, left, w);
        for (int e = 0; e < GPU_EACH; e++) {
            const float fresh = f.rest1 * (f.gradient_factor * g[e]);
            const float new_m = masked(r.mask, v[e], f.beta1 * m[e] + fresh);
            const float move = f.correction * new_m / below(f, v[e]), decay = f.decay * w[e];
            const float new_w = w[e] - decay - move, new_u = (r.decay_moves ? u[e] - decay : u[e]) - move;
            const bool odd = is_odd(fresh) || is_odd(new_m) || is_odd(new_w) || is_odd(new_u);
            bad = bad || odd;
            if (odd) continue;
            m[e] = new_m, w[e] = new_w, u[e] = new_u;
        }
        gpu_store8(r.exp_avg + i, to.aligned, left, m);
        gpu_store8(r.accumulator + i, to.aligned, left, u);
        store_value(to, i, left, w);
        if (bad && r.bad) atomicMin(r.bad, r.number);
    }
};

template <class G>
static sluice_status local_as(sluice_stream *stream, uint32_t count, const slc_zero_one_local_args *args)
{
    return gpu_launch_many<local_elements<G>>(
        stream, "zero_one_local", count, [&](uint32_t k) { return args[k].range.count; },
        [&](uint32_t k) {
            const slc_zero_one_local_args &a = args[k];
            return local_elements<G>{a.factors, arrays_of(a.range), (const G *)a.gradient, gpu_aligned(a.gradient),
                                     a.words};
        });
}

sluice_status slc_zero_one_local_many_cuda(sluice_stream *stream, uint32_t count, const slc_zero_one_local_args *args)
{
    return GPU_BY_TYPE(args->gradient_dtype, local_as, stream, count, args);
}
