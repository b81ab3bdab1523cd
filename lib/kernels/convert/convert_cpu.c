/* Loads widen and stores round, so the operation itself does nothing.
 * convert_test.c covers this file. */
#include "lib/kernels/convert/convert.h"

#include "lib/kernels/lanes_map.h"

LANES_INLINE lanes same(lanes x, lanes unused)
{
    (void)unused;
    return x;
}

void SLC_ISA(slc_convert_range)(const void *context, uint32_t part, uint64_t first, uint64_t last)
{
    (void)part;
    const slc_convert_args *args = context;
    const lanes_map_args map = {args->x, args->x, args->y, args->stream};
    if (args->to == SLUICE_BF16)
        lanes_map(SLUICE_FP32, SLUICE_BF16, &map, first, last, same);
    else
        lanes_map(SLUICE_BF16, SLUICE_FP32, &map, first, last, same);
}
