/* Sums in rank order, scales once, rounds once, stores everywhere. */
#include "lib/kernels/reduce/reduce_ref.h"

static float get(sluice_dtype dtype, const void *array, uint64_t i)
{
    return dtype == SLUICE_BF16 ? sluice_bf16_to_float(((const uint16_t *)array)[i]) : ((const float *)array)[i];
}

static void put(sluice_dtype dtype, void *array, uint64_t i, float value)
{
    if (dtype == SLUICE_BF16)
        ((uint16_t *)array)[i] = sluice_bf16_from_float(value);
    else
        ((float *)array)[i] = value;
}

void slc_reduce_ref(uint64_t count, sluice_dtype from, const void *const *sources, uint32_t source_count, float scale,
                    bool accumulate, sluice_dtype to, void *const *destinations, uint32_t destination_count)
{
    for (uint64_t i = 0; i < count; i++) {
        float sum = get(from, sources[0], i);
        for (uint32_t s = 1; s < source_count; s++) sum += get(from, sources[s], i);
        float value = scale * sum;
        if (accumulate) value = get(to, destinations[0], i) + value;
        for (uint32_t d = 0; d < destination_count; d++) put(to, destinations[d], i, value);
    }
}
