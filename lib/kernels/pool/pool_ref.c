/* Means by their definition. */
#include "lib/kernels/pool/pool_ref.h"

static double weight_of(slc_pool_kind kind, uint64_t tokens, uint64_t row)
{
    if (kind == SLC_POOL_FIRST) return row == 0;
    return row == 0 ? 0 : 1.0 / (double)(tokens - 1);
}

void slc_pool_forward_ref(slc_pool_kind kind, uint64_t batch, uint64_t tokens, uint64_t channels, const double *x,
                          double *y)
{
    for (uint64_t b = 0; b < batch; b++)
        for (uint64_t c = 0; c < channels; c++) {
            y[b * channels + c] = 0;
            for (uint64_t t = 0; t < tokens; t++)
                y[b * channels + c] += weight_of(kind, tokens, t) * x[(b * tokens + t) * channels + c];
        }
}

void slc_pool_backward_ref(slc_pool_kind kind, uint64_t batch, uint64_t tokens, uint64_t channels, const double *dy,
                           double *dx)
{
    for (uint64_t b = 0; b < batch; b++)
        for (uint64_t t = 0; t < tokens; t++)
            for (uint64_t c = 0; c < channels; c++)
                dx[(b * tokens + t) * channels + c] = weight_of(kind, tokens, t) * dy[b * channels + c];
}
