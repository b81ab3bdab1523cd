/* A warp takes a row, eight elements a lane at a time. */
#include "lib/kernels/likeness/likeness.h"

#include "lib/kernels/gpu_sums.cuh"

enum { WARPS = 8, STEP = GPU_LANES * GPU_EACH };

/* aligned: both arrays, and rows. */
template <class T>
static __global__ void __launch_bounds__(WARPS *GPU_LANES) liken_rows(slc_likeness_args a, bool aligned)
{
    const uint64_t row = (uint64_t)blockIdx.x * WARPS + threadIdx.x / GPU_LANES, base = row * a.channels;
    const uint32_t lane = threadIdx.x % GPU_LANES;
    if (row >= a.rows) return;
    float xx = 0, yy = 0, xy = 0, x[GPU_EACH], y[GPU_EACH];
    for (uint64_t c = lane * GPU_EACH; c < a.channels; c += STEP) {
        gpu_load8((const T *)a.x + base + c, aligned, a.channels - c, 0.0f, x);
        gpu_load8((const T *)a.y + base + c, aligned, a.channels - c, 0.0f, y);
        for (int e = 0; e < GPU_EACH; e++) xx += x[e] * x[e], yy += y[e] * y[e], xy += x[e] * y[e];
    }
    const float from = sqrtf(gpu_warp_sum(xx)), to = sqrtf(gpu_warp_sum(yy)), product = gpu_warp_sum(xy);
    if (lane) return;
    ((float *)a.out)[2 * row] = from == 0 ? 0 : to / from;
    ((float *)a.out)[2 * row + 1] = from == 0 || to == 0 ? 0 : product / from / to;
}

template <class T> static sluice_status liken(sluice_stream *stream, const slc_likeness_args *a)
{
    const bool aligned = a->channels % GPU_EACH == 0 && gpu_aligned(a->x) && gpu_aligned(a->y);
    GPU_START(liken_rows<T>, dim3((uint32_t)((a->rows + WARPS - 1) / WARPS)), dim3(WARPS * GPU_LANES), 0,
              slc_cuda_stream(stream), *a, aligned);
    return slc_cuda_launched(stream, "likeness");
}

GPU_KERNEL(slc_likeness, slc_likeness_args, dtype, liken)
