/* Means by their definition. pool_test.c covers this file. */
#include "lib/kernels/pool/pool.h"

static double weight_of(slc_pool_kind kind, uint64_t tokens, uint64_t row)
{
    if (kind == SLC_POOL_FIRST) return row == 0;
    return row == 0 ? 0 : 1.0 / (double)(tokens - 1);
}

void slc_pool_forward_ref(const slc_pool_args *args)
{
    const uint64_t tokens = args->tokens, channels = args->channels;
    const double *x = args->from;
    double *y = args->to;
    for (uint64_t b = 0; b < args->batch; b++)
        for (uint64_t c = 0; c < channels; c++) {
            y[b * channels + c] = 0;
            for (uint64_t t = 0; t < tokens; t++)
                y[b * channels + c] += weight_of(args->kind, tokens, t) * x[(b * tokens + t) * channels + c];
        }
}

void slc_pool_backward_ref(const slc_pool_args *args)
{
    const uint64_t tokens = args->tokens, channels = args->channels;
    const double *dy = args->from;
    double *dx = args->to;
    for (uint64_t b = 0; b < args->batch; b++)
        for (uint64_t t = 0; t < tokens; t++)
            for (uint64_t c = 0; c < channels; c++)
                dx[(b * tokens + t) * channels + c] = weight_of(args->kind, tokens, t) * dy[b * channels + c];
}
