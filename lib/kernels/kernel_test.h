/* Shared by the kernel tests: numbers from a seed, streams, every way in which kernels run (each instruction set of the
 * host, and a GPU or an emulated one), and the distance to float64. */
#ifndef SLC_KERNEL_TEST_H
#define SLC_KERNEL_TEST_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/device/device.h"
#include "lib/kernels/isa.h"
#include "tests/support/scale.h"
#include "tests/support/seed.h"

#include <sluice/dtype.h>

#define TEST_INLINE static inline __attribute__((unused))

/* Runs the statement that follows once for each instruction set that this processor has, or under a sanitizer for the
 * baseline and the widest, which share all code but the width of a register; a program prints once which those are. */
#define TEST_EACH_ISA(isa)                                                                                             \
    for (slc_isa isa = test_first_isa(); isa < SLC_ISA_COUNT; isa++)                                                   \
        if (test_use_isa(isa))

/* Runs it for those, and on the GPU where there is one: test_stream gives a stream of its device then. What kernels
 * read and write must come from test_floats and its like, which a GPU reads in place. Each kernel has ended when its
 * call returns. The statement sees the same `way` once for each. */
#define TEST_EACH_WAY(way) TEST_EACH_WAY_OF(way, 0)
/* Leaves the GPU out where it is emulated and cannot afford so many elements. */
#define TEST_EACH_WAY_OF(way, elements)                                                                                \
    for (int way = (int)test_first_isa(); way <= SLC_ISA_COUNT || test_back_to_host(); way++)                          \
        if (test_use_way(way, elements))

#define TEST_COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* The number of entries of an array to go through: all, or under a sanitizer the first `few`, which reach each branch.
 */
#define TEST_SHAPES(array, few) (test_brief() ? (size_t)(few) : TEST_COUNT_OF(array))

static bool test_on_gpu; /* whether the way in use is the GPU */

TEST_INLINE bool test_takes_isa(slc_isa isa)
{
    bool wider = false;
    for (int other = (int)isa + 1; other < SLC_ISA_COUNT; other++) wider |= slc_isa_available((slc_isa)other);
    return slc_isa_available(isa) && (!test_brief() || isa == SLC_ISA_BASELINE || !wider);
}

/* tests/house/tally.py reads the line. */
TEST_INLINE slc_isa test_first_isa(void)
{
    static bool said;
    char ran[64] = "", lacking[64] = "";
    for (slc_isa isa = SLC_ISA_BASELINE; isa < SLC_ISA_COUNT; isa++) {
        char *list = test_takes_isa(isa) ? ran : lacking;
        if (test_takes_isa(isa) || !slc_isa_available(isa))
            snprintf(list + strlen(list), sizeof ran - strlen(list), " %s", slc_isa_name(isa));
    }
    if (!said) print_message("instruction sets: ran%s; lacking%s\n", ran, lacking);
    said = true;
    return SLC_ISA_BASELINE;
}

TEST_INLINE bool test_use_isa(slc_isa isa)
{
    test_on_gpu = false;
    if (!test_takes_isa(isa)) return false;
    assert_int_equal(slc_isa_force(isa), SLUICE_OK);
    return true;
}

/* Returns the GPU, opened by the first call so that each kernel is waited for; NULL if this build or machine has none.
 */
TEST_INLINE slc_device *test_gpu(void)
{
    static slc_device *device;
    static bool tried;
    if (tried || !slc_device_describe("cuda")) return device;
    tried = true;
    setenv("SLUICE_CUDA_CHECK", "on", 1);
    if (slc_device_open("cuda", &device))
        print_message("kernels on %s: not run: %s\n", slc_device_describe("cuda"), sluice_last_error());
    return device;
}

TEST_INLINE bool test_use_way(int way, uint64_t elements)
{
#if defined(__SANITIZE_ADDRESS__)
    const uint64_t affordable = 8000;
#else
    const uint64_t affordable = 40000;
#endif
    test_on_gpu = way == SLC_ISA_COUNT && test_gpu() &&
                  (elements <= affordable || !strstr(slc_device_describe("cuda"), "emulated"));
    static bool said; /* bench/gpu_check.sh reads the line, and that of test_gpu */
    if (test_on_gpu && !said) print_message("kernels on %s: run\n", slc_device_describe("cuda"));
    said |= test_on_gpu;
    return way == SLC_ISA_COUNT ? test_on_gpu : test_use_isa((slc_isa)way);
}

TEST_INLINE bool test_back_to_host(void)
{
    test_on_gpu = false;
    return false;
}

TEST_INLINE slc_device *test_device(void)
{
    static slc_device *device;
    if (test_on_gpu) return test_gpu();
    if (!device) assert_int_equal(slc_device_open("cpu", &device), SLUICE_OK);
    return device;
}

TEST_INLINE sluice_stream test_stream(uint32_t threads)
{
    sluice_stream stream;
    assert_int_equal(slc_stream_create(test_device(), threads, &stream), SLUICE_OK);
    return stream;
}

/* SplitMix64 (Steele, Lea & Flood, OOPSLA 2014). */
TEST_INLINE uint64_t test_random(uint64_t *state)
{
    uint64_t z = test_seed(*state += 0x9e3779b97f4a7c15ull);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return z ^ z >> 31;
}

TEST_INLINE float test_uniform(uint64_t *state, float low, float high)
{
    return low + (high - low) * ((float)(test_random(state) >> 40) * 0x1p-24f);
}

/* Memory that a GPU reads in place is kept in a list, so that test_release knows it. */
typedef struct test_block {
    slc_pinned memory;
    struct test_block *next;
} test_block;

static test_block *test_blocks;

/* Returns 64-byte aligned memory of at least one byte, which test_release frees. */
TEST_INLINE void *test_bytes(size_t bytes)
{
    if (!test_gpu()) {
        void *plain = aligned_alloc(64, (bytes + 64) / 64 * 64);
        assert_non_null(plain);
        return plain;
    }
    test_block *block = malloc(sizeof *block);
    assert_non_null(block);
    assert_int_equal(slc_pinned_create(test_gpu(), bytes, &block->memory), SLUICE_OK);
    block->next = test_blocks;
    test_blocks = block;
    return block->memory.base;
}

/* Frees what test_bytes and its like gave, or malloc. */
TEST_INLINE void test_release(void *memory)
{
    for (test_block **at = &test_blocks; *at; at = &(*at)->next) {
        test_block *block = *at;
        if (block->memory.base != memory) continue;
        *at = block->next;
        slc_pinned_destroy(&block->memory);
        free(block);
        return;
    }
    free(memory);
}

/* Returns a 64-byte aligned array of at least one element; the caller frees it with test_release. */
TEST_INLINE float *test_floats(uint64_t count)
{
    return test_bytes(count * sizeof(float));
}

TEST_INLINE float *test_uniform_floats(uint64_t count, float low, float high, uint64_t seed)
{
    float *x = test_floats(count);
    for (uint64_t i = 0; i < count; i++) x[i] = test_uniform(&seed, low, high);
    return x;
}

TEST_INLINE float *test_copy(uint64_t count, const float *from)
{
    float *x = test_floats(count);
    memcpy(x, from, count * sizeof *x);
    return x;
}

TEST_INLINE double *test_doubles(uint64_t count)
{
    double *x = calloc(count ? count : 1, sizeof *x);
    assert_non_null(x);
    return x;
}

TEST_INLINE double *test_widen(uint64_t count, const float *from)
{
    double *x = test_doubles(count);
    for (uint64_t i = 0; i < count; i++) x[i] = (double)from[i];
    return x;
}

/* Returns ||got - want|| / ||want||; infinite if any difference is not finite. */
TEST_INLINE double test_nrmse(uint64_t count, const float *got, const double *want)
{
    double error = 0, size = 0;
    for (uint64_t i = 0; i < count; i++) {
        double difference = (double)got[i] - want[i];
        error += difference * difference;
        size += want[i] * want[i];
    }
    if (!isfinite(error)) return INFINITY;
    return size > 0 ? sqrt(error / size) : sqrt(error);
}

TEST_INLINE void test_close(const char *what, uint64_t count, const float *got, const double *want, double bar)
{
    double distance = test_nrmse(count, got, want);
    if (!(distance <= bar)) fail_msg("%s: nRMSE %g is above %g", what, distance, bar);
}

TEST_INLINE const char *test_way_name(void)
{
    return test_on_gpu ? slc_device_describe("cuda") : slc_isa_name(slc_isa_level());
}

/* Sums of a GPU are in another order than the host's, so that each of the two has its own first bits. */
enum { TEST_KINDS = 2 };
#define TEST_FIRST(first) (&(first)[test_on_gpu])

/* Fails unless the bits are those of `first`, which the first call (for the first instruction set) fills. */
TEST_INLINE void test_same_bits(const char *what, uint64_t count, const float *got, float **first)
{
    if (!*first) *first = test_copy(count, got);
    for (uint64_t i = 0; i < count; i++)
        if (memcmp(got + i, *first + i, sizeof *got))
            fail_msg("%s: element %llu of %llu is %.9g on %s, %.9g before", what, (unsigned long long)i,
                     (unsigned long long)count, (double)got[i], test_way_name(), (double)(*first)[i]);
}

/* ---- Arrays of either type ---- */

#define TEST_EACH_DTYPE(dtype) for (sluice_dtype dtype = SLUICE_FP32; dtype <= SLUICE_BF16; dtype++)

/* Returns the numbers in `dtype`, 64-byte aligned; the caller frees them. */
TEST_INLINE void *test_typed(sluice_dtype dtype, uint64_t count, const float *from)
{
    float *x = test_copy(count, from);
    uint16_t *narrow = (uint16_t *)test_floats(count);
    if (dtype == SLUICE_FP32) {
        test_release(narrow);
        return x;
    }
    for (uint64_t i = 0; i < count; i++) narrow[i] = sluice_bf16_from_float(x[i]);
    test_release(x);
    return narrow;
}

TEST_INLINE void *test_uniform_typed(sluice_dtype dtype, uint64_t count, float low, float high, uint64_t seed)
{
    float *x = test_uniform_floats(count, low, high, seed);
    void *typed = test_typed(dtype, count, x);
    test_release(x);
    return typed;
}

/* As test_uniform_typed, for millions of numbers: a drawn piece of odd length is repeated, which takes less long. */
TEST_INLINE void *test_repeated_typed(sluice_dtype dtype, uint64_t count, float low, float high, uint64_t seed)
{
    const uint64_t drawn = count < 8191 ? count : 8191, bytes = sluice_dtype_bytes(dtype);
    char *piece = test_uniform_typed(dtype, drawn, low, high, seed), *x = (char *)test_floats(count);
    for (uint64_t at = 0; at < count; at += drawn)
        memcpy(x + at * bytes, piece, (count - at < drawn ? count - at : drawn) * bytes);
    test_release(piece);
    return x;
}

TEST_INLINE void *test_copy_typed(sluice_dtype dtype, uint64_t count, const void *from)
{
    void *x = test_floats(count);
    memcpy(x, from, count * sluice_dtype_bytes(dtype));
    return x;
}

TEST_INLINE float *test_floats_of(sluice_dtype dtype, uint64_t count, const void *from)
{
    float *x = test_floats(count);
    for (uint64_t i = 0; i < count; i++)
        x[i] = dtype == SLUICE_BF16 ? sluice_bf16_to_float(((const uint16_t *)from)[i]) : ((const float *)from)[i];
    return x;
}

TEST_INLINE double *test_widen_typed(sluice_dtype dtype, uint64_t count, const void *from)
{
    float *x = test_floats_of(dtype, count, from);
    double *wide = test_widen(count, x);
    test_release(x);
    return wide;
}

/* Takes a bar for each type; 0 asks for exact results. Rounding many numbers to bf16 costs 1.7e-3, but up to 3.9e-3 if
 * a few large ones dominate the norm: so the bar is never below what rounding the true values costs. */
TEST_INLINE void test_close_typed(const char *what, sluice_dtype dtype, uint64_t count, const void *got,
                                  const double *want, double fp32_bar, double bf16_bar)
{
    float *x = test_floats_of(dtype, count, got), *ideal = test_floats(count);
    for (uint64_t i = 0; i < count; i++) ideal[i] = sluice_bf16_to_float(sluice_bf16_from_float((float)want[i]));
    if (bf16_bar > 0) bf16_bar = fmax(bf16_bar, 1.02 * test_nrmse(count, ideal, want));
    test_close(what, count, x, want, dtype == SLUICE_BF16 ? bf16_bar : fp32_bar);
    test_release(x), test_release(ideal);
}

/* Compares sums that may nearly cancel. `terms` are sums of the magnitudes of what is added: 3 additions in a row round
 * by at most 3 * 2^-24 of them, and of random numbers many additions round by less, since partial sums stay small
 * beside terms. A sum in bf16 is rounded once more. */
TEST_INLINE void test_close_sums(const char *what, sluice_dtype dtype, uint64_t count, const void *got,
                                 const double *want, const double *terms)
{
    double size = 0, sums = 0;
    for (uint64_t i = 0; i < count; i++) size += want[i] * want[i], sums += terms[i] * terms[i];
    const double bar = size > 0 ? 4e-7 * sqrt(sums / size) : 4e-7 * sqrt(sums);
    test_close_typed(what, dtype, count, got, want, bar, bar + 3e-3);
}

/* Does as test_same_bits. */
TEST_INLINE void test_same_bits_typed(const char *what, sluice_dtype dtype, uint64_t count, const void *got,
                                      float **first)
{
    float *x = test_floats_of(dtype, count, got);
    test_same_bits(what, count, x, first);
    test_release(x);
}

#endif
