/* Sums down the columns of an array, for gradients of what is broadcast over its rows: always in the same order, in two
 * steps. Blocks sum a part of the rows for 32 columns; then the parts are added in their order. */
#pragma once

#include "lib/kernels/gpu.cuh"

enum { GPU_COLUMN_WARPS = 8 };

/* Returns how many parts the rows are cut into, which depends on their number alone. */
static inline uint32_t gpu_column_parts(uint64_t rows)
{
    const uint64_t rows_each = 64, most = 64, parts = (rows + rows_each - 1) / rows_each;
    return (uint32_t)(parts < most ? (parts ? parts : 1) : most);
}

struct gpu_column_shared {
    float sums[GPU_COLUMN_WARPS][GPU_LANES];
};

/* sums[part][column] = sum over the part's rows of functor(row, column) */
template <class F>
static __global__ void __launch_bounds__(GPU_THREADS)
    gpu_column_sums(uint64_t rows, uint64_t columns, F functor, float *sums)
{
    SLC_SHARED(gpu_column_shared, s);
    const uint32_t lane = threadIdx.x % GPU_LANES, warp = threadIdx.x / GPU_LANES;
    const uint64_t column = (uint64_t)blockIdx.x * GPU_LANES + lane, part = blockIdx.y, parts = gridDim.y;
    const uint64_t first = rows * part / parts, last = rows * (part + 1) / parts;
    float sum = 0;
    if (column < columns)
        for (uint64_t row = first + warp; row < last; row += GPU_COLUMN_WARPS) sum += functor(row, column);
    s.sums[warp][lane] = sum;
    __syncthreads();
    if (warp || column >= columns) return;
    for (int w = 1; w < GPU_COLUMN_WARPS; w++) sum += s.sums[w][lane];
    sums[part * columns + column] = sum;
}

/* gradient[c] = (fresh ? 0 : gradient[c]) + sums[0][c] + ..., rounded once */
template <class T>
static __global__ void __launch_bounds__(GPU_THREADS)
    gpu_join_parts(uint64_t columns, uint32_t parts, const float *sums, T *gradient, bool fresh)
{
    const uint64_t column = (uint64_t)blockIdx.x * GPU_THREADS + threadIdx.x;
    if (column >= columns) return;
    float sum = sums[column];
    for (uint32_t part = 1; part < parts; part++) sum += sums[part * columns + column];
    gradient[column] = gpu_round<T>(fresh ? sum : gpu_widen(gradient[column]) + sum);
}

/* Sums down the columns of rows x columns. */
struct gpu_columns {
    const char *kernel;
    uint64_t rows, columns;
    sluice_dtype gradient;
    void *to; /* [columns] in the type `gradient`: added to, or stored if `fresh` */
    bool fresh;
    void *workspace; /* gpu_column_parts(rows) * columns floats */
};

template <class T> static sluice_status gpu_launch_join(sluice_stream *stream, const gpu_columns &c)
{
    const uint32_t blocks = (uint32_t)((c.columns + GPU_THREADS - 1) / GPU_THREADS);
    GPU_START((gpu_join_parts<T>), dim3(blocks), dim3(GPU_THREADS), 0, slc_cuda_stream(stream), c.columns,
              gpu_column_parts(c.rows), (const float *)c.workspace, (T *)c.to, c.fresh);
    return slc_cuda_launched(stream, c.kernel);
}

template <class F> static sluice_status gpu_launch_column_sums(sluice_stream *stream, const gpu_columns &c, F functor)
{
    if (!c.columns) return SLUICE_OK;
    const uint32_t parts = gpu_column_parts(c.rows), blocks = (uint32_t)((c.columns + GPU_LANES - 1) / GPU_LANES);
    GPU_START((gpu_column_sums<F>), dim3(blocks, parts), dim3(GPU_THREADS), sizeof(gpu_column_shared),
              slc_cuda_stream(stream), c.rows, c.columns, functor, (float *)c.workspace);
    sluice_status status = slc_cuda_launched(stream, c.kernel);
    return status ? status : GPU_BY_TYPE(c.gradient, gpu_launch_join, stream, c);
}
