/* Sums in rank order, scales once, rounds once, stores everywhere. reduce_test.c covers this file. */
#include "lib/kernels/reduce/reduce.h"

#include "lib/base/element.h"

static void store(sluice_dtype dtype, void *array, uint64_t i, float value)
{
    if (dtype == SLUICE_BF16)
        ((uint16_t *)array)[i] = sluice_bf16_from_float(value);
    else
        ((float *)array)[i] = value;
}

void slc_reduce_ref(const slc_reduce_args *args)
{
    for (uint64_t i = 0; i < args->count; i++) {
        float sum = slc_element_value(args->sources[0], args->from, i);
        for (uint32_t s = 1; s < args->source_count; s++) sum += slc_element_value(args->sources[s], args->from, i);
        float value = args->scale * sum;
        if (args->accumulate) value = slc_element_value(args->destinations[0], args->to, i) + value;
        for (uint32_t d = 0; d < args->destination_count; d++) store(args->to, args->destinations[d], i, value);
    }
}
