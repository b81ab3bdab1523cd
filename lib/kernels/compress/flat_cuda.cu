/* Copies into and out of flat arrays, eight elements a thread: the operations of flat_cpu.c, in their order. */
#include "lib/kernels/compress/flat_cpu.h"

#include "lib/kernels/compress/packets_cuda.cuh"
#include "lib/kernels/gpu.cuh"

template <class G, class M> struct write_elements {
    const G *gradient;
    const M *momentum;
    float *out;
    float gradient_factor, factor, rest;
    bool gradient_aligned, momentum_aligned, out_aligned;
    const sluice_step_words *words;
    __device__ void operator()(uint64_t i, uint64_t left) const
    {
        float g[GPU_EACH], m[GPU_EACH];
        if (slc_compress_skips(words)) return;
        const float scaled = words ? (float)words->gradient_factor : gradient_factor;
        gpu_load8(gradient + i, gradient_aligned, left, 0.0f, g);
        gpu_load8(momentum + i, momentum_aligned, left, 0.0f, m);
        for (int e = 0; e < GPU_EACH; e++) m[e] = factor * m[e] + rest * (scaled * g[e]);
        gpu_store8(out + i, out_aligned, left, m);
    }
};

template <class G, class M> static write_elements<G, M> elements_of(const slc_flat_args &args)
{
    const slc_compress_input &in = args.input;
    write_elements<G, M> elements = {};
    elements.gradient = (const G *)in.gradient, elements.momentum = (const M *)in.momentum, elements.out = args.out;
    elements.gradient_factor = (float)in.gradient_factor;
    elements.factor = (float)in.factor, elements.rest = (float)in.rest;
    elements.gradient_aligned = gpu_aligned(in.gradient), elements.momentum_aligned = gpu_aligned(in.momentum);
    elements.out_aligned = gpu_aligned(args.out);
    elements.words = in.words;
    return elements;
}

template <class G, class M>
static sluice_status write_as(sluice_stream *stream, uint32_t count, const slc_flat_args *args)
{
    return gpu_launch_many<write_elements<G, M>>(
        stream, "flat_write", count, [&](uint32_t k) { return args[k].count; },
        [&](uint32_t k) { return elements_of<G, M>(args[k]); });
}

sluice_status slc_flat_write_many_cuda(sluice_stream *stream, uint32_t count, const slc_flat_args *args)
{
    return GPU_BY_TYPES(args->input.gradient_dtype, args->input.momentum_dtype, write_as, stream, count, args);
}

struct read_elements {
    slc_compress_packets packets;
    uint64_t first;
    float *out;
    bool aligned;
    const sluice_step_words *words;
    __device__ void operator()(uint64_t i, uint64_t left) const
    {
        float x[GPU_EACH];
        if (slc_compress_skips(words)) return;
        gpu_decode<GPU_EACH>(packets, first + i, left, 1, x);
        gpu_store8(out + i, aligned, left, x);
    }
};

sluice_status slc_flat_read_cuda(sluice_stream *stream, const slc_flat_args *args)
{
    const read_elements elements = {args->packets, args->first, args->out, gpu_aligned(args->out), args->input.words};
    return gpu_launch_each(stream, "flat_read", args->count, elements);
}
