/* The types of elements. Values and gradients are fp32 or bf16. fp32 is IEEE 754's binary32. bf16 is the upper half of
 * an fp32, rounded to the nearest, ties to even (Intel, "BFLOAT16 - Hardware Numerics Definition", 2018, but subnormals
 * are kept, as PyTorch's c10/util/BFloat16.h does); every sum and every update is made in fp32. All functions here are
 * pure: any thread, no errors. */
#ifndef SLUICE_DTYPE_H
#define SLUICE_DTYPE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Types of elements. */
typedef enum {
    SLUICE_FP32 = 0,
    SLUICE_BF16 = 1,
    SLUICE_FP64 = 2, /* this and what follows: what ranks exchange besides; refused as a precision */
    SLUICE_INT64 = 3,
    SLUICE_UINT8 = 4
} sluice_dtype;

#ifdef __cplusplus
static_assert(sizeof(sluice_dtype) == 4, "the library's enums have 4 bytes: compile without -fshort-enums");
#else
_Static_assert(sizeof(sluice_dtype) == 4, "the library's enums have 4 bytes: compile without -fshort-enums");
#endif

/* Bytes of one element; 0 for what is no type. */
static inline size_t sluice_dtype_bytes(sluice_dtype dtype)
{
    switch (dtype) {
    case SLUICE_FP32: return 4;
    case SLUICE_BF16: return 2;
    case SLUICE_FP64: return 8;
    case SLUICE_INT64: return 8;
    case SLUICE_UINT8: return 1;
    }
    return 0;
}

/* "fp32", "bf16", "fp64", "int64", "uint8", or "unknown" for what is no type: a constant. */
static inline const char *sluice_dtype_name(sluice_dtype dtype)
{
    switch (dtype) {
    case SLUICE_FP32: return "fp32";
    case SLUICE_BF16: return "bf16";
    case SLUICE_FP64: return "fp64";
    case SLUICE_INT64: return "int64";
    case SLUICE_UINT8: return "uint8";
    }
    return "unknown";
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
