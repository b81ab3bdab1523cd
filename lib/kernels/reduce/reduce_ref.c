/* Sums in rank order, scales once, rounds once, stores everywhere. reduce_test.c covers this file. */
#include "lib/kernels/reduce/reduce.h"

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

void slc_reduce_ref(const slc_reduce_args *args)
{
    for (uint64_t i = 0; i < args->count; i++) {
        float sum = get(args->from, args->sources[0], i);
        for (uint32_t s = 1; s < args->source_count; s++) sum += get(args->from, args->sources[s], i);
        float value = args->scale * sum;
        if (args->accumulate) value = get(args->to, args->destinations[0], i) + value;
        for (uint32_t d = 0; d < args->destination_count; d++) put(args->to, args->destinations[d], i, value);
    }
}
