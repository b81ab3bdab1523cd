/* The types that values and gradients may have. fp32 is IEEE 754's binary32. bf16 is the upper half of an fp32, rounded
 * to the nearest, ties to even (Intel, "BFLOAT16 - Hardware Numerics Definition", 2018, but subnormals are kept, as
 * PyTorch's c10/util/BFloat16.h does); every sum and every update is made in fp32. All functions here are pure: any
 * thread, no errors. */
#ifndef SLUICE_DTYPE_H
#define SLUICE_DTYPE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum { SLUICE_FP32 = 0, SLUICE_BF16 = 1 } sluice_dtype;

/* Bytes of one element. */
static inline size_t sluice_dtype_bytes(sluice_dtype dtype)
{
    return dtype == SLUICE_BF16 ? 2 : 4;
}

/* "fp32" or "bf16", a constant. */
static inline const char *sluice_dtype_name(sluice_dtype dtype)
{
    return dtype == SLUICE_BF16 ? "bf16" : "fp32";
}

/* Rounds; a value beyond the largest bf16 becomes infinity, a NaN stays one and becomes quiet. */
static inline uint16_t sluice_bf16_from_float(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* Exact. */
static inline float sluice_bf16_to_float(uint16_t x)
{
    uint32_t bits = (uint32_t)x << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

#ifdef __cplusplus
}
#endif
#endif
