/* Host's forms of the four kernels with which nccl-tests prepares its inputs and checks its results, for
 * HOSTCUDA_KERNELS.
 *
 * They are found by name inside the mangled ones, which also name the element's type and the operator. Inputs are ours:
 * small whole numbers, such that every order of a reduction has the same bits in every type. If a sum of all ranks
 * would not be exact (8 bits of floating point), all but two ranks give zeros; a product has at most two twos. */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "tests/nccl/bed/hostcuda/hostcuda.h"

/* ---- Types and operators, by their names ---- */

typedef enum { SIGNED, UNSIGNED, FLOATING } family;
typedef struct {
    const char *code; /* as compilers mangle it */
    family family;
    size_t bytes;
    int exponent_bits, mantissa_bits;
} element_type;

static const element_type types[] = {
    {"a", SIGNED, 1, 0, 0},
    {"h", UNSIGNED, 1, 0, 0},
    {"i", SIGNED, 4, 0, 0},
    {"j", UNSIGNED, 4, 0, 0},
    {"l", SIGNED, 8, 0, 0},
    {"m", UNSIGNED, 8, 0, 0},
    {"t", UNSIGNED, 2, 0, 0},
    {"f", FLOATING, 4, 8, 23},
    {"d", FLOATING, 8, 11, 52},
    {"6__half", FLOATING, 2, 5, 10},
    {"13__nv_bfloat16", FLOATING, 2, 8, 7},
    {"13__nv_fp8_e4m3", FLOATING, 1, 4, 3},
    {"13__nv_fp8_e5m2", FLOATING, 1, 5, 2},
};

typedef enum { NIL, SUM, PROD, MIN, MAX, AVG, PRE_MUL_SUM } reduction;
static const char *const reductions[] = {"ReduceNil", "ReduceSum", "ReduceProd",     "ReduceMin",
                                         "ReduceMax", "ReduceAvg", "ReducePreMulSum"};

/* The first template argument of `function` in a mangled name; NULL if it is none of these types. */
static const element_type *type_of(const char *name, const char *function)
{
    const char *at = strstr(name, function) + strlen(function) + 1; /* 1: 'I' */
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (!strncmp(at, types[i].code, strlen(types[i].code))) return &types[i];
    fprintf(stderr, "hostcuda: %s: the host's form of %s does not know this type of elements\n", name, function);
    return NULL;
}

static reduction reduction_of(const char *name)
{
    for (reduction r = SUM; r <= PRE_MUL_SUM; r++)
        if (strstr(name, reductions[r])) return r;
    return NIL;
}

/* ---- Numbers ---- */

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 27) * 0x94d049bb133111ebull;
    return x ^ x >> 31;
}

/* Two ranks that are drawn for an element. */
static bool is_drawn(uint64_t element, int ranks, int rank)
{
    const uint64_t first = element % (uint64_t)ranks;
    if ((uint64_t)rank == first) return true;
    return ranks > 1 && (uint64_t)rank == (first + 1 + (element >> 32) % (uint64_t)(ranks - 1)) % (uint64_t)ranks;
}

/* The number that a rank gives to the reduction of an element. */
static int input(const element_type *type, reduction op, int ranks, int rank, uint64_t seed, int64_t index)
{
    const uint64_t element = mix(seed + 0x9e3779b97f4a7c15ull * ((uint64_t)index + 1));
    const uint64_t own = mix(element + (uint64_t)rank);
    switch (op) {
    case MIN:
    case MAX: return (int)(own % 8) - (type->family == UNSIGNED ? 0 : 3);
    case PROD: return 1 + (int)(own % 2) * is_drawn(element, ranks, rank);
    case NIL: return (int)(own % 8);
    case SUM:
    case AVG:
    case PRE_MUL_SUM: break;
    }
    const bool all = type->family != FLOATING || type->bytes > 1;
    if (all) return 1 + (int)(own % 3);
    return is_drawn(element, ranks, rank) ? 1 + (int)(own % 2) : 0;
}

static double expected(const element_type *type, reduction op, int ranks, uint64_t seed, int64_t index)
{
    int all = 0;
    for (int rank = 0; rank < ranks; rank++) {
        int own = input(type, op, ranks, rank, seed, index);
        if (op == PRE_MUL_SUM && rank % 2) own *= 2; /* nccl-tests' scalars are 1 and 2 by turns */
        if (!rank)
            all = own;
        else if (op == NIL)
            break;
        else if (op == PROD)
            all *= own;
        else if (op == MIN || op == MAX)
            all = (op == MIN) == (own < all) ? own : all;
        else
            all += own;
    }
    if (op != AVG) return all;
    return type->family == FLOATING ? (double)all / ranks : (double)(all / ranks);
}

/* The bits of a number in a floating-point type, rounded to the nearest even. */
static uint64_t float_bits(double value, int exponent_bits, int mantissa_bits)
{
    const uint64_t sign = (uint64_t)(value < 0) << (exponent_bits + mantissa_bits);
    const int bias = (1 << (exponent_bits - 1)) - 1;
    int exponent;
    if (value == 0) return 0;
    frexp(fabs(value), &exponent);
    exponent -= 1;
    if (exponent < 1 - bias) exponent = 1 - bias;
    const uint64_t mantissa = (uint64_t)nearbyint(ldexp(fabs(value), mantissa_bits - exponent));
    return sign | (((uint64_t)(exponent + bias - 1) << mantissa_bits) + mantissa);
}

static uint64_t bits_of(const element_type *type, double value)
{
    if (type->family == FLOATING) return float_bits(value, type->exponent_bits, type->mantissa_bits);
    return (uint64_t)(int64_t)value;
}

static void store(void *at, int64_t index, size_t bytes, uint64_t bits)
{
    memcpy((char *)at + (size_t)index * bytes, &bits, bytes); /* little endian */
}

static uint64_t load(const void *at, int64_t index, size_t bytes)
{
    uint64_t bits = 0;
    memcpy(&bits, (const char *)at + (size_t)index * bytes, bytes);
    return bits;
}

static bool differ(uint64_t a, uint64_t b, size_t bytes, unsigned tolerance)
{
    if (bytes < 8) b &= (1ull << 8 * bytes) - 1;
    return (a < b ? b - a : a - b) > tolerance;
}

/* ---- The kernels ---- */

#define ARGUMENT(type, number) (*(type *)launch->arguments[number])

/* (elements, count, operator, ranks, rank, seed, first index) */
static void prepare_input(const hostcuda_launch *launch)
{
    const element_type *type = type_of(launch->name, "prepareInput2");
    const reduction op = reduction_of(launch->name);
    if (!type) return;
    for (int64_t i = 0; i < ARGUMENT(int64_t, 1); i++) {
        int value =
            input(type, op, ARGUMENT(int, 3), ARGUMENT(int, 4), ARGUMENT(uint64_t, 5), ARGUMENT(int64_t, 6) + i);
        store(ARGUMENT(void *, 0), i, type->bytes, bits_of(type, value));
    }
}

/* (elements, count, operator, ranks, seed, first index) */
static void prepare_expected(const hostcuda_launch *launch)
{
    const element_type *type = type_of(launch->name, "prepareExpected2");
    const reduction op = reduction_of(launch->name);
    if (!type) return;
    for (int64_t i = 0; i < ARGUMENT(int64_t, 1); i++) {
        double value = expected(type, op, ARGUMENT(int, 3), ARGUMENT(uint64_t, 4), ARGUMENT(int64_t, 5) + i);
        store(ARGUMENT(void *, 0), i, type->bytes, bits_of(type, value));
    }
}

/* (results, expected, count, tolerance, where to add the number of wrong ones) */
static void verify_prepared(const hostcuda_launch *launch)
{
    const element_type *type = type_of(launch->name, "verifyPrepared");
    int64_t wrong = type ? 0 : ARGUMENT(int64_t, 2);
    for (int64_t i = 0; type && i < ARGUMENT(int64_t, 2); i++) {
        uint64_t right = load(ARGUMENT(void *, 1), i, type->bytes);
        wrong += differ(load(ARGUMENT(void *, 0), i, type->bytes), right, type->bytes, ARGUMENT(unsigned, 3));
    }
    __atomic_fetch_add(ARGUMENT(int64_t *, 4), wrong, __ATOMIC_RELAXED);
}

/* (results, count, operator, ranks, seed, first index, tolerance, where to add the number of wrong ones) */
static void verify_inline(const hostcuda_launch *launch)
{
    const element_type *type = type_of(launch->name, "verifyInline2");
    const reduction op = reduction_of(launch->name);
    int64_t wrong = type ? 0 : ARGUMENT(int64_t, 1);
    for (int64_t i = 0; type && i < ARGUMENT(int64_t, 1); i++) {
        double value = expected(type, op, ARGUMENT(int, 3), ARGUMENT(uint64_t, 4), ARGUMENT(int64_t, 5) + i);
        uint64_t right = bits_of(type, value);
        wrong += differ(load(ARGUMENT(void *, 0), i, type->bytes), right, type->bytes, ARGUMENT(unsigned, 6));
    }
    __atomic_fetch_add(ARGUMENT(int64_t *, 7), wrong, __ATOMIC_RELAXED);
}

/* An operator is an object without members, or of one number that its name and the ranks tell too: a byte of it is
 * copied and not looked at. */
__attribute__((constructor)) static void register_kernels(void)
{
    static const size_t input_bytes[] = {8, 8, 1, 4, 4, 8, 8, 0}, expected_bytes[] = {8, 8, 1, 4, 8, 8, 0};
    static const size_t prepared_bytes[] = {8, 8, 8, 4, 8, 0}, inline_bytes[] = {8, 8, 1, 4, 8, 8, 4, 8, 0};
    hostcuda_register_kernel("*prepareInput2I", prepare_input, input_bytes);
    hostcuda_register_kernel("*prepareExpected2I", prepare_expected, expected_bytes);
    hostcuda_register_kernel("*verifyPreparedI", verify_prepared, prepared_bytes);
    hostcuda_register_kernel("*verifyInline2I", verify_inline, inline_bytes);
}
