/* Three sums go over a row in fp32. likeness_test.c covers this file. */
#include "lib/kernels/likeness/likeness.h"

#include "lib/kernels/lanes.h"

#include <math.h>

LANES_INLINE void liken(sluice_dtype dtype, const slc_likeness_args *args, uint64_t first, uint64_t last)
{
    float *out = args->out;
    for (uint64_t row = first; row < last; row++) {
        lanes xx = lanes_set(0.0f), yy = lanes_set(0.0f), xy = lanes_set(0.0f);
        for (uint64_t c = 0; c < args->channels; c += LANES) {
            const uint64_t at = row * args->channels + c, left = args->channels - c;
            const lanes x = lanes_load_some_as(dtype, args->x, at, left, 0.0f);
            const lanes y = lanes_load_some_as(dtype, args->y, at, left, 0.0f);
            xx = lanes_add(xx, lanes_mul(x, x));
            yy = lanes_add(yy, lanes_mul(y, y));
            xy = lanes_add(xy, lanes_mul(x, y));
        }
        const float from = sqrtf(lanes_sum(xx)), to = sqrtf(lanes_sum(yy)), product = lanes_sum(xy);
        out[2 * row] = from == 0 ? 0 : to / from;
        out[2 * row + 1] = from == 0 || to == 0 ? 0 : product / from / to;
    }
}

LANES_KERNEL(slc_likeness_range, slc_likeness_args, dtype, liken)
