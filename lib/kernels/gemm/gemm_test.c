/* Combinations of types, transposes, post-ops and row distances must agree with float64, also from several
 * threads. */
#include "lib/kernels/gemm/gemm.h"
#include "lib/kernels/isa_bf16.h"
#include "tests/support/kernels/arrays.h"

#include <pthread.h>

enum { GAP = 5 }; /* elements between rows, if a row distance is given */

/* An array of some type, and its values in float64. */
typedef struct {
    sluice_dtype dtype;
    uint64_t count;
    void *data;
    double *wide;
} array;

static double array_get(const array *x, uint64_t at)
{
    return x->dtype == SLUICE_BF16 ? (double)sluice_bf16_to_float(((const uint16_t *)x->data)[at])
                                   : (double)((const float *)x->data)[at];
}

static array array_random(sluice_dtype dtype, uint64_t count, uint64_t seed)
{
    array x = {.dtype = dtype, .count = count, .data = test_uniform_floats(count, -1, 1, seed)};
    if (dtype == SLUICE_BF16) /* narrowed in place, from the front */
        for (uint64_t i = 0; i < count; i++) ((uint16_t *)x.data)[i] = sluice_bf16_from_float(((float *)x.data)[i]);
    x.wide = test_doubles(count);
    for (uint64_t i = 0; i < count; i++) x.wide[i] = array_get(&x, i);
    return x;
}

static void array_free(array *x)
{
    test_release(x->data), test_release(x->wide);
}

static uint64_t row(uint64_t given, uint64_t dense)
{
    return given ? given : dense;
}

/* Returns true if C has so few elements that the terms of all of them may nearly cancel. */
static bool may_cancel(const slc_gemm_shape *s)
{
    return s->m * s->n < 16;
}

/* In bf16 the rounding alone costs 1.7e-3 over many elements, and up to 3.9e-3 in an unlucky one. A GPU rounds the
 * factor's product with the bias as well, which can double that in an element whose terms cancel. */
static double bar_of(const slc_gemm_shape *s)
{
    if (s->out == SLUICE_FP32) return 2e-6;
    if (may_cancel(s)) return 8e-3;
    return s->m * s->n < 256 ? 4e-3 : 2.5e-3;
}

/* Compares C with the reference. The error is relative to C; if C has few elements, whose terms may cancel, it is
 * relative to `terms`, the sums of the terms' magnitudes. */
static void compare(const slc_gemm_shape *s, const array *c, const double *terms)
{
    const double *sizes = may_cancel(s) ? terms : c->wide;
    uint64_t ldc = row(s->ldc, s->n);
    double error = 0, size = 0;
    for (uint64_t i = 0; i < c->count; i++) {
        double got = array_get(c, i);
        if (i % ldc >= s->n && got != c->wide[i])
            fail_msg("gemm wrote between the rows of C, at %llu", (unsigned long long)i);
        error += (got - c->wide[i]) * (got - c->wide[i]), size += sizes[i] * sizes[i];
    }
    if (!(error <= bar_of(s) * bar_of(s) * size))
        fail_msg("%s %llu x %llu x %llu, A%s B%s%s%s%s%s, rows %llu %llu %llu apart: nRMSE %g is above %g",
                 s->dtype != s->out ? "bf16 to fp32" : sluice_dtype_name(s->dtype), (unsigned long long)s->m,
                 (unsigned long long)s->n, (unsigned long long)s->k, s->transpose_a ? "'" : "",
                 s->transpose_b ? "'" : "", s->bias ? ", bias" : "", s->residual ? ", residual" : "",
                 s->accumulate ? ", accumulate" : "", s->factor ? ", factor" : "", (unsigned long long)s->lda,
                 (unsigned long long)s->ldb, (unsigned long long)s->ldc, sqrt(error / size), bar_of(s));
}

/* Returns true if the host can multiply; in a build without oneDNN it cannot. */
static bool host_multiplies(void)
{
    bool widened, allocates;
    const char *name;
    return slc_gemm_path(SLUICE_FP32, &widened, &allocates, &name) == SLUICE_OK;
}

static void skip_without_host_products(void)
{
    if (host_multiplies()) return;
    print_message("SKIP: built without oneDNN, so there are no products on the host\n");
    skip();
}

/* Returns true if the products run on a GPU, which has no use for this one. */
static bool not_for_a_gpu(const slc_gemm_shape *s)
{
    return test_on_gpu() && s->accumulate && s->residual;
}

static void check(sluice_stream *stream, slc_gemm_shape s)
{
    if (not_for_a_gpu(&s)) return;
    array a = array_random(s.dtype, row(s.lda, s.transpose_a ? s.m : s.k) * (s.transpose_a ? s.k : s.m), 1);
    array b = array_random(s.dtype, row(s.ldb, s.transpose_b ? s.k : s.n) * (s.transpose_b ? s.n : s.k), 2);
    array bias = array_random(s.dtype, s.n, 3);
    array residual = array_random(s.out, row(s.ldc, s.n) * s.m, 4), c = array_random(s.out, residual.count, 5);
    const float factor = 1.75f;
    double *terms = test_magnitudes(c.count, c.wide);
    double *magnitudes[] = {test_magnitudes(a.count, a.wide), test_magnitudes(b.count, b.wide),
                            test_magnitudes(bias.count, bias.wide), test_magnitudes(residual.count, residual.wide)};
    slc_gemm_ref(&s, &(slc_gemm_operands){magnitudes[0], magnitudes[1], magnitudes[2], magnitudes[3], terms, factor});
    slc_gemm_ref(&s, &(slc_gemm_operands){a.wide, b.wide, bias.wide, residual.wide, c.wide, factor});

    uint64_t bytes = 0;
    assert_int_equal(slc_gemm_workspace_bytes(stream, &s, &bytes), SLUICE_OK);
    float *workspace = test_floats(bytes / sizeof(float) + 1);
    const slc_gemm_operands x = {.a = a.data,
                                 .b = b.data,
                                 .bias = s.bias ? bias.data : NULL,
                                 .residual = s.residual ? residual.data : NULL,
                                 .c = c.data,
                                 .factor = factor};
    assert_int_equal(slc_gemm(stream, &s, &x, workspace, bytes), SLUICE_OK);
    compare(&s, &c, terms);
    for (size_t i = 0; i < TEST_COUNT_OF(magnitudes); i++) test_release(magnitudes[i]);
    test_release(terms);
    array_free(&a), array_free(&b), array_free(&bias), array_free(&residual), array_free(&c);
    test_release(workspace);
}

static unsigned digit(uint64_t *number, unsigned base)
{
    unsigned value = (unsigned)(*number % base);
    *number /= base;
    return value;
}

enum { COMBINATIONS = 3 * 2 * 2 * 2 * 2 * 2 * 5 * 2 };

static slc_gemm_shape combination(uint64_t number, const uint64_t size[3])
{
    unsigned type = digit(&number, 3);
    slc_gemm_shape s = {.dtype = type ? SLUICE_BF16 : SLUICE_FP32, .out = type == 1 ? SLUICE_BF16 : SLUICE_FP32};
    s.m = size[0], s.n = size[1], s.k = size[2];
    s.transpose_a = digit(&number, 2), s.transpose_b = digit(&number, 2), s.accumulate = digit(&number, 2),
    s.bias = digit(&number, 2), s.residual = digit(&number, 2);
    unsigned gap = digit(&number, 5); /* none, in A, in B, in C, in all */
    s.factor = digit(&number, 2);
    if (gap == 1 || gap == 4) s.lda = (s.transpose_a ? s.m : s.k) + GAP;
    if (gap == 2 || gap == 4) s.ldb = (s.transpose_b ? s.k : s.n) + GAP;
    if (gap == 3 || gap == 4) s.ldc = s.n + GAP;
    return s;
}

static void all_combinations(void **state)
{
    (void)state;
    const uint64_t size[] = {13, 37, 29};
    for (int gpu = !host_multiplies(); gpu < 2; gpu++) {
        if (gpu && !test_use_way(SLC_ISA_COUNT, 0)) break;
        sluice_stream stream = test_stream(1);
        for (uint64_t i = 0; i < COMBINATIONS; i++) check(&stream, combination(i, size));
        slc_stream_destroy(&stream);
    }
    test_back_to_host();
}

static void draws(const uint64_t sizes[][3], size_t count, int each)
{
    uint64_t seed = 7;
    for (uint32_t threads = host_multiplies() ? 1 : 4; threads <= 4; threads++) { /* 4: the GPU */
        if (threads == 4 && !test_use_way(SLC_ISA_COUNT, 0)) break;
        sluice_stream stream = test_stream(threads);
        for (size_t i = 0; i < count; i++)
            for (int draw = 0; draw < (test_brief() ? each / 6 : each); draw++)
                check(&stream, combination(test_random(&seed) % COMBINATIONS, sizes[i]));
        slc_stream_destroy(&stream);
    }
    test_back_to_host();
}

static void sizes_and_threads(void **state)
{
    (void)state;
    const uint64_t sizes[][3] = {{1, 1, 1},    {3, 5, 7},   {8, 48, 16},     {64, 33, 129},  {197, 64, 96},
                                 {1, 200, 64}, {70, 1, 65}, {130, 257, 300}, {65, 1024, 52}, {300, 96, 110}};
    draws(sizes, TEST_COUNT_OF(sizes), 24);
}

/* Sizes at which the product is cut along m, n or k: because of copies, of B's panels, or of widening. */
static void tiles(void **state)
{
    (void)state;
    const uint64_t sizes[][3] = {{5, 7, 4100},   {257, 65, 2049}, {256, 1024, 33}, {1040, 4, 1025},
                                 {3, 5000, 901}, {333, 4500, 3},  {521, 9, 1037},  {9, 1030, 1037}};
    draws(sizes, TEST_COUNT_OF(sizes), 6);
}

/* Products with few rows of A must be right on each instruction set, and with and without the instruction for pairs of
 * bf16 that some processors have. */
static void few_rows(void **state)
{
    (void)state;
    const uint64_t sizes[][3] = {{1, 257, 131}, {2, 33, 200}, {4, 96, 768}, {3, 515, 100},
                                 {4, 640, 37},  {7, 90, 510}, {16, 130, 67}};
    uint64_t seed = 11;
    skip_without_host_products();
    for (int way = 0; way <= SLC_ISA_COUNT; way++) {
        const bool holds_back = way == SLC_ISA_COUNT;
        if (!test_use_way(holds_back ? SLC_ISA_AVX512 : way, 0)) continue;
        slc_isa_hold_back_bf16(holds_back);
        for (uint32_t threads = 1; threads <= 3; threads += 2) {
            sluice_stream stream = test_stream(threads);
            for (size_t i = 0; i < TEST_COUNT_OF(sizes); i++)
                for (int draw = 0; draw < (test_brief() ? 4 : 24); draw++) {
                    slc_gemm_shape s = combination(test_random(&seed) % COMBINATIONS, sizes[i]);
                    s.transpose_a = false, s.lda = s.lda ? s.k + GAP : 0;
                    check(&stream, s);
                }
            slc_stream_destroy(&stream);
        }
    }
    slc_isa_hold_back_bf16(false);
    test_back_to_host();
}

static void repeats_to_the_bit(void **state)
{
    (void)state;
    skip_without_host_products();
    for (uint32_t threads = 1; threads <= 2; threads++)
        for (unsigned bits = 0; bits < 4; bits++) {
            sluice_stream stream = test_stream(threads);
            slc_gemm_shape s = {.transpose_a = bits & 1, .transpose_b = bits & 2, .m = 64, .n = 192, .k = 300};
            float *a = test_uniform_floats(s.m * s.k, -1, 1, 1), *b = test_uniform_floats(s.k * s.n, -1, 1, 2);
            float *c = test_floats(s.m * s.n), *first = NULL;
            uint64_t bytes = 0;
            slc_gemm_workspace_bytes(&stream, &s, &bytes);
            float *workspace = test_floats(bytes / sizeof(float) + 1);
            for (int i = 0; i < 5; i++) {
                const slc_gemm_operands x = {.a = a, .b = b, .c = c};
                assert_int_equal(slc_gemm(&stream, &s, &x, workspace, bytes), SLUICE_OK);
                test_same_bits("gemm", s.m * s.n, c, &first);
            }
            test_release(a), test_release(b), test_release(c), test_release(first), test_release(workspace);
            slc_stream_destroy(&stream);
        }
}

/* cmocka's assertions may be used by the main thread only, so the others just count. */
static void *many_shapes(void *failures)
{
    sluice_stream stream = *(sluice_stream *)failures;
    for (uint64_t i = 0; i < 200; i++) {
        slc_gemm_shape s = {.transpose_b = true, .m = 4, .n = 16 + i % 40, .k = 8};
        float a[4 * 8], b[8 * 64], c[4 * 64], workspace[65536];
        for (int j = 0; j < 4 * 8; j++) a[j] = 1;
        for (int j = 0; j < 8 * 64; j++) b[j] = 2;
        const slc_gemm_operands x = {.a = a, .b = b, .c = c};
        if (slc_gemm(&stream, &s, &x, workspace, sizeof workspace)) return failures;
        for (uint64_t j = 0; j < 4 * s.n; j++)
            if (c[j] != 16.0f) return failures;
    }
    return NULL;
}

static void from_several_threads(void **state)
{
    (void)state;
    skip_without_host_products();
    sluice_stream stream = test_stream(1);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) assert_int_equal(pthread_create(&threads[i], NULL, many_shapes, &stream), 0);
    for (int i = 0; i < 4; i++) {
        void *failed = NULL;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    slc_stream_destroy(&stream);
}

static void wrong_arguments(void **state)
{
    (void)state;
    sluice_stream stream = test_stream(1);
    float x[64] = {0};
    uint64_t bytes;
    slc_gemm_shape none = {.m = 0, .n = 4, .k = 4}, overlap = {.m = 4, .n = 4, .k = 4, .lda = 3},
                   plain = {.m = 4, .n = 4, .k = 4};
    assert_int_equal(slc_gemm_workspace_bytes(&stream, &none, &bytes), SLUICE_ERR_ARGUMENT);
    const slc_gemm_operands none_more = {.a = x, .b = x, .c = x}, with_bias = {.a = x, .b = x, .bias = x, .c = x};
    assert_int_equal(slc_gemm(&stream, &overlap, &none_more, NULL, 0), SLUICE_ERR_ARGUMENT);
    assert_int_equal(slc_gemm(&stream, &plain, &with_bias, NULL, 0), SLUICE_ERR_ARGUMENT);
    slc_stream_destroy(&stream);
}

/* The tests that hold oneDNN back repeat the one that does not if the processor has nothing that they hold back. */
static bool holds_nothing_back(const char *most)
{
#if defined(__x86_64__)
    if (!strcmp(most, "AVX2")) return !__builtin_cpu_supports("avx512f");
    if (!strcmp(most, "AVX512_CORE")) return !__builtin_cpu_supports("avx512vnni");
    return false;
#else
    return true;
#endif
}

int main(void)
{
    const char *most = getenv("ONEDNN_MAX_CPU_ISA");
    if (most && holds_nothing_back(most)) {
        printf("SKIP: this processor has nothing beyond %s: kernels.gemm_test takes the same way\n", most);
        return 77;
    }
    bool widened, allocates;
    const char *name = "none";
    bool amx = slc_gemm_path(SLUICE_BF16, &widened, &allocates, &name) == SLUICE_OK && strstr(name, "amx");
    if (!most && host_multiplies())
        printf("instruction sets: ran%s; lacking%s\n", amx ? " amx" : "", amx ? "" : " amx");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_combinations),
        cmocka_unit_test(sizes_and_threads),
        cmocka_unit_test(tiles),
        cmocka_unit_test(few_rows),
        cmocka_unit_test(repeats_to_the_bit),
        cmocka_unit_test(from_several_threads),
        cmocka_unit_test(wrong_arguments),
    };
#if defined(__SANITIZE_THREAD__)
    cmocka_set_test_filter("from_several_threads"); /* the others have one thread */
#endif
    return cmocka_run_group_tests(tests, NULL, NULL);
}
