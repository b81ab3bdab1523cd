/* Small whole numbers, and their bits in every data type. */
#include "tests/nccl/programs/shared/values.h"

#include "tests/nccl/programs/shared/ranks.h"
#include "tests/support/draw.h"

#include <math.h>
#include <string.h>

size_t slc_dtype_bytes(ncclDataType_t dtype)
{
    switch (dtype) {
    case ncclInt8:
    case ncclUint8:
    case ncclFloat8e4m3:
    case ncclFloat8e5m2: return 1;
    case ncclFloat16:
    case ncclBfloat16: return 2;
    case ncclInt32:
    case ncclUint32:
    case ncclFloat32: return 4;
    default: return 8;
    }
}

/* The bits of a number in a floating type with so many bits of exponent and fraction. */
static unsigned float_bits(double value, int exponent_bits, int fraction_bits)
{
    if (value == 0) return 0;
    int exponent;
    double fraction = frexp(fabs(value), &exponent) * 2 - 1; /* 0 to 1 */
    double scaled = ldexp(fraction, fraction_bits);
    unsigned biased = (unsigned)(exponent - 1 + (1 << (exponent_bits - 1)) - 1);
    CHECK(scaled == floor(scaled) && biased > 0 && biased < 1u << exponent_bits, "%g is not exact", value);
    unsigned sign = value < 0 ? 1u << (exponent_bits + fraction_bits) : 0;
    return sign | biased << fraction_bits | (unsigned)scaled;
}

void slc_value_write(void *array, size_t i, ncclDataType_t dtype, double value)
{
    union {
        int8_t i8;
        uint8_t u8;
        uint16_t u16;
        int32_t i32;
        uint32_t u32;
        int64_t i64;
        uint64_t u64;
        float f32;
        double f64;
    } bits = {0};
    switch (dtype) {
    case ncclInt8: bits.i8 = (int8_t)value; break;
    case ncclUint8: bits.u8 = (uint8_t)value; break;
    case ncclInt32: bits.i32 = (int32_t)value; break;
    case ncclUint32: bits.u32 = (uint32_t)value; break;
    case ncclInt64: bits.i64 = (int64_t)value; break;
    case ncclUint64: bits.u64 = (uint64_t)value; break;
    case ncclFloat32: bits.f32 = (float)value; break;
    case ncclFloat64: bits.f64 = value; break;
    case ncclFloat16: bits.u16 = (uint16_t)float_bits(value, 5, 10); break;
    case ncclBfloat16: bits.u16 = (uint16_t)float_bits(value, 8, 7); break;
    case ncclFloat8e4m3: bits.u8 = (uint8_t)float_bits(value, 4, 3); break;
    case ncclFloat8e5m2: bits.u8 = (uint8_t)float_bits(value, 5, 2); break;
    default: CHECK(0, "data type %d is not known", (int)dtype);
    }
    size_t bytes = slc_dtype_bytes(dtype);
    memcpy((char *)array + i * bytes, &bits, bytes);
}

static uint64_t drawn(uint64_t seed, int rank, size_t i)
{
    return mix(seed * 0x9e3779b97f4a7c15u + mix((uint64_t)i * 64 + (uint64_t)rank));
}

/* A float of 8 bits with 2 bits of fraction holds 0 to 8 exactly, and 2 to the power of anything small. */
double slc_value_given(uint64_t seed, int rank, int size, size_t i, ncclRedOp_t redop)
{
    uint64_t bits = drawn(seed, rank, i);
    switch (redop) {
    case ncclSum: return (double)(bits % (size <= 2 ? 5 : size == 3 ? 3 : 2));
    case ncclProd: return (double)(1 + bits % 2);
    case ncclAvg: /* the same on all ranks, or something on rank 0 alone */
        return drawn(seed, -1, i) % 2 ? (double)(1 << drawn(seed, -2, i) % 3) : rank == 0 ? size : 0;
    case ncclMax:
    case ncclMin: return (double)(bits % 9);
    default: return (double)(bits % (size <= 2 ? 3 : 2)); /* times 2 */
    }
}

double slc_value_reduced(uint64_t seed, int size, size_t i, ncclRedOp_t redop)
{
    double result = slc_value_given(seed, 0, size, i, redop);
    for (int r = 1; r < size; r++) {
        double given = slc_value_given(seed, r, size, i, redop);
        switch (redop) {
        case ncclProd: result *= given; break;
        case ncclMax: result = fmax(result, given); break;
        case ncclMin: result = fmin(result, given); break;
        default: result += given;
        }
    }
    if (redop == ncclAvg) return result / size;
    return redop >= ncclNumOps ? result * 2 : result;
}

void slc_values_give(void *array, size_t first, size_t count, ncclDataType_t dtype, uint64_t seed, int rank, int size,
                     ncclRedOp_t redop)
{
    for (size_t i = 0; i < count; i++)
        slc_value_write(array, i, dtype, slc_value_given(seed, rank, size, first + i, redop));
}

size_t slc_values_differ(const void *array, const void *expected, size_t count, ncclDataType_t dtype)
{
    size_t bytes = slc_dtype_bytes(dtype);
    for (size_t i = 0; i < count; i++)
        if (memcmp((const char *)array + i * bytes, (const char *)expected + i * bytes, bytes) != 0) return i;
    return count;
}
