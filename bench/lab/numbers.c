/* tests/command/measure/kernels_test.sh covers this file. */
#include "bench/lab/numbers.h"

void slc_lab_fill(sluice_dtype dtype, uint64_t count, void *x, uint32_t seed)
{
    for (uint64_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u; /* Numerical Recipes' generator; good enough for a speed */
        const float value = (float)(int32_t)seed * 0x1p-31f;
        if (dtype == SLUICE_BF16)
            ((uint16_t *)x)[i] = sluice_bf16_from_float(value);
        else
            ((float *)x)[i] = value;
    }
}
