/* Elements of arrays whose type is known at run time. Any thread. */
#pragma once

#include <sluice/dtype.h>
#include <stdint.h>

/* The address of element number `element` of an array. */
static inline void *slc_element(const void *array, sluice_dtype dtype, uint64_t element)
{
    return (unsigned char *)(uintptr_t)array + element * sluice_dtype_bytes(dtype);
}

/* Element number `element` of an array of bfloat16 or float32. */
static inline float slc_element_value(const void *array, sluice_dtype dtype, uint64_t element)
{
    return dtype == SLUICE_BF16 ? sluice_bf16_to_float(((const uint16_t *)array)[element])
                                : ((const float *)array)[element];
}
