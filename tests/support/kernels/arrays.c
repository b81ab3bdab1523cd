#include "tests/support/kernels/arrays.h"

#include "lib/base/element.h"

uint64_t test_random(uint64_t *state)
{
    uint64_t z = test_seed(*state += 0x9e3779b97f4a7c15ull);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return z ^ z >> 31;
}

float test_uniform(uint64_t *state, float low, float high)
{
    return low + (high - low) * ((float)(test_random(state) >> 40) * 0x1p-24f);
}

/* Memory that a GPU reads in place is kept in a list, so that test_release knows it. */
typedef struct test_block {
    slc_pinned memory;
    struct test_block *next;
} test_block;

static test_block *test_blocks;

void *test_bytes(size_t bytes)
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

void *test_zeros(uint64_t bytes)
{
    void *x = test_bytes((bytes + 127) / 64 * 64);
    return memset(x, 0, (bytes + 127) / 64 * 64);
}

void *test_zeroed(uint64_t bytes)
{
    void *x = aligned_alloc(64, (bytes + 127) / 64 * 64);
    assert_non_null(x);
    return memset(x, 0, (bytes + 127) / 64 * 64);
}

void test_release(void *memory)
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

float *test_floats(uint64_t count)
{
    return test_bytes(count * sizeof(float));
}

float *test_uniform_floats(uint64_t count, float low, float high, uint64_t seed)
{
    float *x = test_floats(count);
    for (uint64_t i = 0; i < count; i++) x[i] = test_uniform(&seed, low, high);
    return x;
}

float *test_copy(uint64_t count, const float *from)
{
    float *x = test_floats(count);
    memcpy(x, from, count * sizeof *x);
    return x;
}

double *test_doubles(uint64_t count)
{
    double *x = calloc(count ? count : 1, sizeof *x);
    assert_non_null(x);
    return x;
}

double *test_widen(uint64_t count, const float *from)
{
    double *x = test_doubles(count);
    for (uint64_t i = 0; i < count; i++) x[i] = (double)from[i];
    return x;
}

/* Returns ||got - want|| / ||want||; infinite if any difference is not finite. */
static double test_nrmse(uint64_t count, const float *got, const double *want)
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

void test_close(const char *what, uint64_t count, const float *got, const double *want, double bar)
{
    double distance = test_nrmse(count, got, want);
    if (!(distance <= bar)) fail_msg("%s: nRMSE %g is above %g", what, distance, bar);
}

void test_same_bits(const char *what, uint64_t count, const float *got, float **first)
{
    if (!*first) *first = test_copy(count, got);
    for (uint64_t i = 0; i < count; i++)
        if (memcmp(got + i, *first + i, sizeof *got))
            fail_msg("%s: element %llu of %llu is %.9g on %s, %.9g before", what, (unsigned long long)i,
                     (unsigned long long)count, (double)got[i], test_way_name(), (double)(*first)[i]);
}

/* ---- Arrays of either type ---- */

void *test_typed(sluice_dtype dtype, uint64_t count, const float *from)
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

void *test_uniform_typed(sluice_dtype dtype, uint64_t count, float low, float high, uint64_t seed)
{
    float *x = test_uniform_floats(count, low, high, seed);
    void *typed = test_typed(dtype, count, x);
    test_release(x);
    return typed;
}

void *test_gradients(sluice_dtype dtype, uint64_t count, uint64_t seed)
{
    return test_uniform_typed(dtype, count, count == 1 ? 0.05f : -0.1f, 0.1f, seed);
}

void *test_repeated_typed(sluice_dtype dtype, uint64_t count, float low, float high, uint64_t seed)
{
    const uint64_t drawn = count < 8191 ? count : 8191, bytes = sluice_dtype_bytes(dtype);
    char *piece = test_uniform_typed(dtype, drawn, low, high, seed), *x = (char *)test_floats(count);
    for (uint64_t at = 0; at < count; at += drawn)
        memcpy(x + at * bytes, piece, (count - at < drawn ? count - at : drawn) * bytes);
    test_release(piece);
    return x;
}

void *test_copy_typed(sluice_dtype dtype, uint64_t count, const void *from)
{
    void *x = test_floats(count);
    memcpy(x, from, count * sluice_dtype_bytes(dtype));
    return x;
}

float *test_floats_of(sluice_dtype dtype, uint64_t count, const void *from)
{
    float *x = test_floats(count);
    for (uint64_t i = 0; i < count; i++) x[i] = slc_element_value(from, dtype, i);
    return x;
}

double *test_widen_typed(sluice_dtype dtype, uint64_t count, const void *from)
{
    float *x = test_floats_of(dtype, count, from);
    double *wide = test_widen(count, x);
    test_release(x);
    return wide;
}

void test_close_typed(const char *what, sluice_dtype dtype, uint64_t count, const void *got, const double *want,
                      double fp32_bar, double bf16_bar)
{
    float *x = test_floats_of(dtype, count, got), *ideal = test_floats(count);
    for (uint64_t i = 0; i < count; i++) ideal[i] = sluice_bf16_to_float(sluice_bf16_from_float((float)want[i]));
    if (bf16_bar > 0) bf16_bar = fmax(bf16_bar, 1.02 * test_nrmse(count, ideal, want));
    test_close(what, count, x, want, dtype == SLUICE_BF16 ? bf16_bar : fp32_bar);
    test_release(x), test_release(ideal);
}

double *test_magnitudes(uint64_t count, const double *from)
{
    double *x = test_doubles(count);
    for (uint64_t i = 0; i < count; i++) x[i] = fabs(from[i]);
    return x;
}

void test_close_sums(const char *what, sluice_dtype dtype, uint64_t count, const void *got, const double *want,
                     const double *terms)
{
    double size = 0, sums = 0;
    for (uint64_t i = 0; i < count; i++) size += want[i] * want[i], sums += terms[i] * terms[i];
    const double bar = size > 0 ? 4e-7 * sqrt(sums / size) : 4e-7 * sqrt(sums);
    test_close_typed(what, dtype, count, got, want, bar, bar + 3e-3);
}

void test_same_bits_typed(const char *what, sluice_dtype dtype, uint64_t count, const void *got, float **first)
{
    float *x = test_floats_of(dtype, count, got);
    test_same_bits(what, count, x, first);
    test_release(x);
}
