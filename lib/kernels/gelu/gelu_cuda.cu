/* The formulas of gelu_cpu.c, eight elements a thread. */
#include "lib/kernels/gelu/gelu.h"

#include "lib/kernels/gpu_math.cuh"

static __device__ float gelu_value(slc_gelu_function function, float x, float dy)
{
    const float two_root = 1.5957691216057308f, two_root_cubic = 0.0713548162726002f, one_root = 0.3989422804014327f;
    const float square = x * x;
    float bell;
    switch (function) {
    case SLC_GELU_TANH_FORWARD: return x * gpu_logistic(x * fmaf(two_root_cubic, square, two_root));
    case SLC_GELU_TANH_BACKWARD: {
        const float slope = fmaf(3 * two_root_cubic, square, two_root);
        const float s = gpu_logistic(x * fmaf(two_root_cubic, square, two_root));
        return dy * fmaf(x, s * (1.0f - s) * slope, s);
    }
    case SLC_GELU_ERF_FORWARD: return x * gpu_normal(x, &bell);
    case SLC_GELU_ERF_BACKWARD: {
        const float below = gpu_normal(x, &bell);
        return dy * fmaf(x * one_root, bell, below);
    }
    case SLC_TANH_FORWARD: return gpu_tanh(x);
    case SLC_TANH_BACKWARD: break;
    }
    return dy * fmaf(0.0f - x, x, 1.0f);
}

template <class T, slc_gelu_function FUNCTION> struct gelu_elements {
    const T *x, *dy;
    T *out;
    bool aligned;
    __device__ void operator()(uint64_t i, uint64_t left) const
    {
        float a[GPU_EACH], b[GPU_EACH];
        gpu_load8(x + i, aligned, left, 0.0f, a);
        gpu_load8(dy + i, aligned, left, 0.0f, b);
        for (int e = 0; e < GPU_EACH; e++) a[e] = gelu_value(FUNCTION, a[e], b[e]);
        gpu_store8(out + i, aligned, left, a);
    }
};

template <class T, slc_gelu_function FUNCTION>
static sluice_status launch(sluice_stream *stream, const slc_gelu_args *a)
{
    const gelu_elements<T, FUNCTION> elements = {(const T *)a->x, (const T *)a->dy, (T *)a->out,
                                                 gpu_aligned(a->x) && gpu_aligned(a->dy) && gpu_aligned(a->out)};
    return gpu_launch_each(stream, "gelu", a->count, elements);
}

template <class T> static sluice_status launch_function(sluice_stream *stream, const slc_gelu_args *args)
{
    switch (args->function) {
    case SLC_GELU_TANH_FORWARD: return launch<T, SLC_GELU_TANH_FORWARD>(stream, args);
    case SLC_GELU_TANH_BACKWARD: return launch<T, SLC_GELU_TANH_BACKWARD>(stream, args);
    case SLC_GELU_ERF_FORWARD: return launch<T, SLC_GELU_ERF_FORWARD>(stream, args);
    case SLC_GELU_ERF_BACKWARD: return launch<T, SLC_GELU_ERF_BACKWARD>(stream, args);
    case SLC_TANH_FORWARD: return launch<T, SLC_TANH_FORWARD>(stream, args);
    case SLC_TANH_BACKWARD: break;
    }
    return launch<T, SLC_TANH_BACKWARD>(stream, args);
}

GPU_KERNEL(slc_gelu, slc_gelu_args, dtype, launch_function)
