/* Blocks of elements are reduced in a buffer of their own, so that the compiler makes vectors of the loops and the
 * result may lie over a source. */
#include "tests/nccl/bed/hostnccl/arithmetic.h"

#include <sluice/dtype.h>
#include <string.h>

enum { BLOCK = 1024 };

size_t hostnccl_type_bytes(ncclDataType_t type)
{
    static const size_t bytes[ncclNumTypes] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
    return bytes[type];
}

bool hostnccl_type_is_float(ncclDataType_t type)
{
    return type >= ncclFloat16;
}

static float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* A binary16's bits; those of e5m2 are its upper half. */
static inline float half_decode(uint32_t half)
{
    float magnitude = float_of((half & 0x7fff) << 13) * 0x1p112f;
    uint32_t bits = bits_of(magnitude) | (half & 0x8000) << 16;
    return float_of((half & 0x7c00) == 0x7c00 ? bits | 0x7f800000 : bits);
}

static inline float e4m3_decode(uint32_t code)
{
    float magnitude = float_of((code & 0x7f) << 20) * 0x1p120f;
    uint32_t bits = bits_of(magnitude) | (code & 0x80) << 24;
    return float_of((code & 0x7f) == 0x7f ? bits | 0x7fc00000 : bits);
}

/* The nearest number with this many bits of mantissa and this bias; what is larger than `limit` becomes `limit`. All
 * ways are computed and one is taken, without branches, and compared as signed numbers, which all vector units can. */
static inline uint32_t small_encode(float value, int mantissa, int bias, float limit, uint32_t nan)
{
    uint32_t given = bits_of(value), sign = given >> 31 << (mantissa == 10 ? 15 : 7), bits = given & 0x7fffffff;
    bool is_nan = (int32_t)bits > 0x7f800000;
    bits = (int32_t)bits > (int32_t)bits_of(limit) ? bits_of(limit) : bits;
    uint32_t magic = (uint32_t)(127 + 24 - bias - mantissa) << 23; /* its last bit is worth the smallest subnormal */
    uint32_t subnormal = bits_of(float_of(bits) + float_of(magic)) - magic;
    uint32_t rounded = bits + ((uint32_t)(bias - 127) << 23) + (1u << (22 - mantissa)) - 1;
    uint32_t normal = (rounded + (bits >> (23 - mantissa) & 1)) >> (23 - mantissa);
    uint32_t code = (int32_t)bits < (128 - bias) << 23 ? subnormal : normal;
    return sign | (is_nan ? nan : code);
}

static inline uint32_t half_encode(float value)
{
    return small_encode(value, 10, 15, 65536.0f, 0x7e00);
}

static inline uint32_t e5m2_encode(float value)
{
    return small_encode(value, 2, 15, 57344.0f, 0x7f);
}

static inline uint32_t e4m3_encode(float value)
{
    return small_encode(value, 3, 7, 448.0f, 0x7f);
}

float hostnccl_small_decode(ncclDataType_t type, unsigned code)
{
    switch (type) {
    case ncclFloat16: return half_decode(code);
    case ncclBfloat16: return sluice_bf16_to_float((uint16_t)code);
    case ncclFloat8e5m2: return half_decode(code << 8);
    default: return e4m3_decode(code);
    }
}

unsigned hostnccl_small_encode(ncclDataType_t type, float value)
{
    switch (type) {
    case ncclFloat16: return half_encode(value);
    case ncclBfloat16: return sluice_bf16_from_float(value);
    case ncclFloat8e5m2: return e5m2_encode(value);
    default: return e4m3_encode(value);
    }
}

static bool is_small(ncclDataType_t type)
{
    return type == ncclFloat16 || type == ncclBfloat16 || type >= ncclFloat8e4m3;
}

static void small_load(ncclDataType_t type, const void *from, size_t n, float *to)
{
    const uint16_t *wide = from;
    const uint8_t *narrow = from;
    switch (type) {
    case ncclFloat16:
        for (size_t i = 0; i < n; i++) to[i] = half_decode(wide[i]);
        break;
    case ncclBfloat16:
        for (size_t i = 0; i < n; i++) to[i] = sluice_bf16_to_float(wide[i]);
        break;
    case ncclFloat8e5m2:
        for (size_t i = 0; i < n; i++) to[i] = half_decode((uint32_t)narrow[i] << 8);
        break;
    default:
        for (size_t i = 0; i < n; i++) to[i] = e4m3_decode(narrow[i]);
    }
}

static void small_store(ncclDataType_t type, const float *from, size_t n, void *to)
{
    uint16_t *wide = to;
    uint8_t *narrow = to;
    switch (type) {
    case ncclFloat16:
        for (size_t i = 0; i < n; i++) wide[i] = (uint16_t)half_encode(from[i]);
        break;
    case ncclBfloat16:
        for (size_t i = 0; i < n; i++) wide[i] = sluice_bf16_from_float(from[i]);
        break;
    case ncclFloat8e5m2:
        for (size_t i = 0; i < n; i++) narrow[i] = (uint8_t)e5m2_encode(from[i]);
        break;
    default:
        for (size_t i = 0; i < n; i++) narrow[i] = (uint8_t)e4m3_encode(from[i]);
    }
}

/* Sums and products of whole numbers are made in U, which wraps. */
#define ACCUMULATE(T, U)                                                                                               \
    static void accumulate_##T(ncclRedOp_t op, T *sum, const T *more, size_t n)                                        \
    {                                                                                                                  \
        switch (op) {                                                                                                  \
        case ncclProd:                                                                                                 \
            for (size_t i = 0; i < n; i++) sum[i] = (T)((U)sum[i] * (U)more[i]);                                       \
            break;                                                                                                     \
        case ncclMax:                                                                                                  \
            for (size_t i = 0; i < n; i++) sum[i] = more[i] > sum[i] ? more[i] : sum[i];                               \
            break;                                                                                                     \
        case ncclMin:                                                                                                  \
            for (size_t i = 0; i < n; i++) sum[i] = more[i] < sum[i] ? more[i] : sum[i];                               \
            break;                                                                                                     \
        default:                                                                                                       \
            for (size_t i = 0; i < n; i++) sum[i] = (T)((U)sum[i] + (U)more[i]);                                       \
        }                                                                                                              \
    }                                                                                                                  \
    static void scale_##T(T scalar, const T *in, T *out, size_t n)                                                     \
    {                                                                                                                  \
        for (size_t i = 0; i < n; i++) out[i] = (T)((U)in[i] * (U)scalar);                                             \
    }

#define REDUCE(T)                                                                                                      \
    static void reduce_##T(ncclRedOp_t op, bool divides, int count, const void *const *sources, void *result,          \
                           size_t n)                                                                                   \
    {                                                                                                                  \
        T sum[BLOCK], *out = result;                                                                                   \
        for (size_t at = 0; at < n; at += BLOCK) {                                                                     \
            size_t block = n - at < BLOCK ? n - at : BLOCK;                                                            \
            memcpy(sum, (const T *)sources[0] + at, block * sizeof(T));                                                \
            for (int s = 1; s < count; s++) accumulate_##T(op, sum, (const T *)sources[s] + at, block);                \
            if (divides)                                                                                               \
                for (size_t i = 0; i < block; i++) sum[i] = (T)(sum[i] / (T)count);                                    \
            memcpy(out + at, sum, block * sizeof(T));                                                                  \
        }                                                                                                              \
    }

#define NATIVE(T, U) ACCUMULATE(T, U) REDUCE(T)
NATIVE(int8_t, unsigned)
NATIVE(uint8_t, unsigned)
NATIVE(int32_t, uint32_t)
NATIVE(uint32_t, uint32_t)
NATIVE(int64_t, uint64_t)
NATIVE(uint64_t, uint64_t)
NATIVE(float, float)
NATIVE(double, double)

static void reduce_small(ncclDataType_t type, ncclRedOp_t op, int count, const void *const *sources, void *out,
                         size_t n)
{
    float sum[BLOCK], more[BLOCK];
    size_t width = hostnccl_type_bytes(type);
    for (size_t at = 0; at < n; at += BLOCK) {
        size_t block = n - at < BLOCK ? n - at : BLOCK;
        small_load(type, (const char *)sources[0] + at * width, block, sum);
        for (int s = 1; s < count; s++) {
            small_load(type, (const char *)sources[s] + at * width, block, more);
            accumulate_float(op, sum, more, block);
        }
        small_store(type, sum, block, (char *)out + at * width);
    }
}

void hostnccl_reduce(ncclDataType_t type, ncclRedOp_t op, int count, const void *const *sources, void *out, size_t n)
{
    bool divides = op == ncclAvg && !hostnccl_type_is_float(type);
    switch (type) {
    case ncclInt8: reduce_int8_t(op, divides, count, sources, out, n); break;
    case ncclUint8: reduce_uint8_t(op, divides, count, sources, out, n); break;
    case ncclInt32: reduce_int32_t(op, divides, count, sources, out, n); break;
    case ncclUint32: reduce_uint32_t(op, divides, count, sources, out, n); break;
    case ncclInt64: reduce_int64_t(op, divides, count, sources, out, n); break;
    case ncclUint64: reduce_uint64_t(op, divides, count, sources, out, n); break;
    case ncclFloat32: reduce_float(op, divides, count, sources, out, n); break;
    case ncclFloat64: reduce_double(op, divides, count, sources, out, n); break;
    default: reduce_small(type, op, count, sources, out, n);
    }
}

static void scale_small(ncclDataType_t type, float scalar, const void *in, void *out, size_t n)
{
    float values[BLOCK];
    size_t width = hostnccl_type_bytes(type);
    for (size_t at = 0; at < n; at += BLOCK) {
        size_t block = n - at < BLOCK ? n - at : BLOCK;
        small_load(type, (const char *)in + at * width, block, values);
        scale_float(scalar, values, values, block);
        small_store(type, values, block, (char *)out + at * width);
    }
}

#define SCALE(T)                                                                                                       \
    {                                                                                                                  \
        T factor;                                                                                                      \
        memcpy(&factor, scalar, sizeof factor);                                                                        \
        scale_##T(factor, in, out, n);                                                                                 \
        break;                                                                                                         \
    }

void hostnccl_scale(ncclDataType_t type, const void *scalar, const void *in, void *out, size_t n)
{
    switch (type) {
    case ncclInt8: SCALE(int8_t)
    case ncclUint8: SCALE(uint8_t)
    case ncclInt32: SCALE(int32_t)
    case ncclUint32: SCALE(uint32_t)
    case ncclInt64: SCALE(int64_t)
    case ncclUint64: SCALE(uint64_t)
    case ncclFloat32: SCALE(float)
    case ncclFloat64: SCALE(double)
    default: {
        float factor;
        small_load(type, scalar, 1, &factor);
        scale_small(type, factor, in, out, n);
    }
    }
}

void hostnccl_scale_average(ncclDataType_t type, int ranks, const void *in, void *out, size_t n)
{
    if (is_small(type)) {
        scale_small(type, 1.0f / (float)ranks, in, out, n);
    } else if (type == ncclFloat64) {
        scale_double(1.0 / ranks, in, out, n);
    } else {
        scale_float(1.0f / (float)ranks, in, out, n);
    }
}
