/* Goes through sixteen channels at a time, down the rows in order. pool_test.c covers this file. */
#include "lib/kernels/pool/pool.h"

#include "lib/kernels/lanes.h"

LANES_INLINE void forward(sluice_dtype dtype, const slc_pool_args *args, uint64_t first, uint64_t last)
{
    const uint64_t channels = args->channels, tokens = args->tokens;
    bool mean = args->kind == SLC_POOL_MEAN_OF_REST;
    uint64_t begin = mean, end = mean ? tokens : 1;
    lanes count = lanes_set((float)(end - begin));
    for (uint64_t b = first; b < last; b++)
        for (uint64_t c = 0; c < channels; c += LANES) {
            lanes sum = lanes_set(0.0f);
            for (uint64_t t = begin; t < end; t++)
                sum = lanes_add(
                    sum, lanes_load_some_as(dtype, args->from, (b * tokens + t) * channels + c, channels - c, 0.0f));
            lanes_store_some_as(dtype, args->to, b * channels + c, channels - c, lanes_div(sum, count));
        }
}

LANES_INLINE void backward(sluice_dtype dtype, const slc_pool_args *args, uint64_t first, uint64_t last)
{
    const uint64_t channels = args->channels, tokens = args->tokens;
    bool mean = args->kind == SLC_POOL_MEAN_OF_REST;
    lanes count = lanes_set(mean ? (float)(tokens - 1) : 1.0f);
    for (uint64_t row = first; row < last; row++) {
        bool seen = (row % tokens != 0) == mean;
        for (uint64_t c = 0; c < channels; c += LANES) {
            uint64_t left = channels - c;
            lanes share = lanes_set(0.0f);
            if (seen)
                share =
                    lanes_div(lanes_load_some_as(dtype, args->from, row / tokens * channels + c, left, 0.0f), count);
            lanes_store_some_as(dtype, args->to, row * channels + c, left, share);
        }
    }
}

LANES_KERNEL(slc_pool_forward_range, slc_pool_args, dtype, forward)

LANES_KERNEL(slc_pool_backward_range, slc_pool_args, dtype, backward)
