/* Eight elements a thread. */
#include "lib/kernels/convert/convert.h"

#include "lib/kernels/gpu.cuh"

template <class From, class To> struct convert_elements {
    const From *x;
    To *y;
    bool aligned;
    __device__ void operator()(uint64_t i, uint64_t left) const
    {
        float values[GPU_EACH];
        gpu_load8(x + i, aligned, left, 0.0f, values);
        gpu_store8(y + i, aligned, left, values);
    }
};

sluice_status slc_convert_cuda(sluice_stream *stream, sluice_dtype from, const void *x, sluice_dtype, void *y,
                               uint64_t count)
{
    const bool aligned = gpu_aligned(x) && gpu_aligned(y);
    if (from == SLUICE_FP32) {
        const convert_elements<float, gpu_bf16> narrow = {(const float *)x, (gpu_bf16 *)y, aligned};
        return gpu_launch_each(stream, "convert", count, narrow);
    }
    const convert_elements<gpu_bf16, float> widen = {(const gpu_bf16 *)x, (float *)y, aligned};
    return gpu_launch_each(stream, "convert", count, widen);
}
