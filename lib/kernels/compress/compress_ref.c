/* DeepSpeed 0.16.4's compressed_allreduce; the blocks of elements with a scale for each are our own.
 * compress_test.c covers this file. */
#include "lib/kernels/compress/compress.h"

#include <math.h>

static double sign_of(double x)
{
    return x < 0 ? -1 : 1;
}

/* Returns the scale of elements from..to-1 and stores their errors. */
static double compress(const double *sum, double *error, uint64_t from, uint64_t to)
{
    double squares = 0;
    for (uint64_t i = from; i < to; i++) squares += sum[i] * sum[i];
    double scale = sqrt(squares / (double)(to - from));
    for (uint64_t i = from; i < to; i++) error[i] = sum[i] - scale * sign_of(sum[i]);
    return scale;
}

/* Compresses one chunk block by block. */
static void compress_blocks(const slc_compress_shape *shape, const double *sum, double *error, double *scale)
{
    uint64_t chunk = slc_compress_chunk(shape), block = shape->scale_elements ? shape->scale_elements : chunk;
    for (uint64_t from = 0, i = 0; from < chunk; from += block, i++)
        scale[i] = compress(sum, error, from, from + block < chunk ? from + block : chunk);
}

void slc_compress_worker_ref(const slc_compress_shape *shape, const double *x, double *error, double *sum,
                             double *scale)
{
    uint64_t chunk = slc_compress_chunk(shape), all = shape->ranks * chunk;
    for (uint64_t i = 0; i < all; i++) sum[i] = (i < shape->count ? x[i] : 0) + error[i];
    if (!shape->scale_elements) scale[0] = all ? compress(sum, error, 0, all) : 0;
    for (uint32_t k = 0; k < shape->ranks; k++)
        if (shape->scale_elements)
            compress_blocks(shape, sum + k * chunk, error + k * chunk, scale + k * slc_compress_scales(shape));
        else
            scale[k] = scale[0];
}

void slc_compress_server_ref(const slc_compress_shape *shape, const double *const *sign, const double *const *scale,
                             double *error, double *sum, double *result_scale)
{
    uint64_t chunk = slc_compress_chunk(shape);
    for (uint64_t i = 0; i < chunk; i++) {
        sum[i] = 0;
        for (uint32_t r = 0; r < shape->ranks; r++)
            sum[i] += sign[r][i] * scale[r][shape->scale_elements ? i / shape->scale_elements : 0] / shape->ranks;
        sum[i] += error[i];
    }
    compress_blocks(shape, sum, error, result_scale);
}
