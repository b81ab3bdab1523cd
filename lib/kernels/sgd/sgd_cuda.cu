/* The operations of sgd_cpu.c, in their order, eight elements a thread. */
#include "lib/kernels/sgd/sgd.h"

#include "lib/kernels/gpu.cuh"

template <class G> struct sgd_elements {
    const G *gradient;
    float *value, *buffer;
    gpu_bf16 *rounded;
    float learning_rate, momentum, weight_decay, rest, gradient_factor;
    bool nesterov, aligned;
    const sluice_step_words *words;
    __device__ void operator()(uint64_t i, uint64_t left) const
    {
        float g[GPU_EACH], w[GPU_EACH], m[GPU_EACH];
        const float factor = words ? (float)words->gradient_factor : gradient_factor;
        if (words && words->skip) return;
        gpu_load8(gradient + i, aligned, left, 0.0f, g);
        gpu_load8(value + i, aligned, left, 0.0f, w);
        if (buffer) gpu_load8(buffer + i, aligned, left, 0.0f, m);
        for (int e = 0; e < GPU_EACH; e++) {
            g[e] = factor * g[e] + weight_decay * w[e];
            if (buffer) m[e] = momentum * m[e] + rest * g[e];
            if (buffer) g[e] = nesterov ? g[e] + momentum * m[e] : m[e];
            w[e] = w[e] - learning_rate * g[e];
        }
        gpu_store8(value + i, aligned, left, w);
        if (buffer) gpu_store8(buffer + i, aligned, left, m);
        if (rounded) gpu_store8(rounded + i, aligned, left, w);
    }
};

template <class G> static sluice_status launch(sluice_stream *stream, const slc_sgd_args *a)
{
    sgd_elements<G> elements = {};
    elements.gradient = (const G *)a->gradient;
    elements.value = (float *)a->value;
    elements.buffer = (float *)a->buffer;
    elements.rounded = (gpu_bf16 *)a->rounded;
    elements.learning_rate = (float)a->learning_rate;
    elements.momentum = (float)a->momentum;
    elements.weight_decay = (float)a->weight_decay;
    elements.rest = (float)a->rest;
    elements.gradient_factor = (float)a->gradient_factor;
    elements.nesterov = a->nesterov;
    elements.aligned =
        gpu_aligned(a->gradient) && gpu_aligned(a->value) && gpu_aligned(a->buffer) && gpu_aligned(a->rounded);
    elements.words = a->words;
    return gpu_launch_each(stream, "sgd", a->count, elements);
}

GPU_KERNEL(slc_sgd, slc_sgd_args, gradient_dtype, launch)
