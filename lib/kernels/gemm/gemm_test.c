/* Every combination of transposes, accumulation, bias and row distances against float64, from several threads. */
#include "lib/kernels/gemm/gemm.h"
#include "lib/kernels/gemm/gemm_ref.h"
#include "lib/kernels/kernel_test.h"

#include <pthread.h>

enum { GAP = 5 }; /* between rows, where a row distance is given */

static void check(slc_stream *stream, const slc_gemm_shape *shape)
{
    uint64_t lda = shape->lda ? shape->lda : shape->transpose_a ? shape->m : shape->k;
    uint64_t ldb = shape->ldb ? shape->ldb : shape->transpose_b ? shape->k : shape->n;
    uint64_t ldc = shape->ldc ? shape->ldc : shape->n;
    uint64_t a_count = lda * (shape->transpose_a ? shape->k : shape->m);
    uint64_t b_count = ldb * (shape->transpose_b ? shape->n : shape->k), c_count = ldc * shape->m;
    float *a = test_uniform_floats(a_count, -1, 1, 1), *b = test_uniform_floats(b_count, -1, 1, 2);
    float *bias = test_uniform_floats(shape->n, -1, 1, 3), *c = test_uniform_floats(c_count, -1, 1, 4);
    double *a64 = test_widen(a_count, a), *b64 = test_widen(b_count, b), *bias64 = test_widen(shape->n, bias),
           *c64 = test_widen(c_count, c);
    slc_gemm_ref(shape, a64, b64, bias64, c64);

    uint64_t bytes = 0;
    assert_int_equal(slc_gemm_workspace_bytes(stream, shape, &bytes), SLUICE_OK);
    float *workspace = test_floats(bytes / sizeof(float) + 1);
    assert_int_equal(slc_gemm(stream, shape, a, b, shape->bias ? bias : NULL, c, workspace, bytes), SLUICE_OK);
    for (uint64_t row = 0; row < shape->m; row++) /* gaps between rows are left alone */
        for (uint64_t i = shape->n; i < ldc; i++) assert_true((double)c[row * ldc + i] == c64[row * ldc + i]);
    test_close("gemm", c_count, c, c64, 1e-6);
    free(a), free(b), free(bias), free(c), free(workspace);
    free(a64), free(b64), free(bias64), free(c64);
}

static void agrees_with_float64(void **state)
{
    (void)state;
    const uint64_t sizes[][3] = {{1, 1, 1},     {3, 5, 7},    {8, 48, 16}, {64, 33, 129},
                                 {197, 64, 96}, {1, 200, 64}, {70, 1, 65}};
    for (uint32_t threads = 1; threads <= 2; threads++) {
        slc_stream stream = test_stream(threads);
        for (size_t i = 0; i < TEST_COUNT_OF(sizes); i++)
            for (unsigned bits = 0; bits < 128; bits++) {
                slc_gemm_shape s = {.transpose_a = bits & 1,
                                    .transpose_b = bits & 2,
                                    .accumulate = bits & 4,
                                    .bias = bits & 8,
                                    .m = sizes[i][0],
                                    .n = sizes[i][1],
                                    .k = sizes[i][2]};
                if (bits & 16) s.lda = (s.transpose_a ? s.m : s.k) + GAP;
                if (bits & 32) s.ldb = (s.transpose_b ? s.k : s.n) + GAP;
                if (bits & 64) s.ldc = s.n + GAP;
                check(&stream, &s);
            }
        slc_stream_destroy(&stream);
    }
}

static void repeats_to_the_bit(void **state)
{
    (void)state;
    for (uint32_t threads = 1; threads <= 2; threads++)
        for (unsigned bits = 0; bits < 4; bits++) {
            slc_stream stream = test_stream(threads);
            slc_gemm_shape s = {.transpose_a = bits & 1, .transpose_b = bits & 2, .m = 64, .n = 192, .k = 300};
            float *a = test_uniform_floats(s.m * s.k, -1, 1, 1), *b = test_uniform_floats(s.k * s.n, -1, 1, 2);
            float *c = test_floats(s.m * s.n), *first = NULL;
            uint64_t bytes = 0;
            slc_gemm_workspace_bytes(&stream, &s, &bytes);
            float *workspace = test_floats(bytes / sizeof(float) + 1);
            for (int i = 0; i < 5; i++) {
                assert_int_equal(slc_gemm(&stream, &s, a, b, NULL, c, workspace, bytes), SLUICE_OK);
                test_same_bits("gemm", s.m * s.n, c, &first);
            }
            free(a), free(b), free(c), free(first), free(workspace);
            slc_stream_destroy(&stream);
        }
}

/* cmocka's assertions belong to the main thread, so the others only count. */
static void *many_shapes(void *failures)
{
    slc_stream stream = *(slc_stream *)failures;
    for (uint64_t i = 0; i < 200; i++) {
        slc_gemm_shape s = {.transpose_b = true, .m = 4, .n = 16 + i % 40, .k = 8};
        float a[4 * 8], b[8 * 64], c[4 * 64], workspace[65536];
        for (int j = 0; j < 4 * 8; j++) a[j] = 1;
        for (int j = 0; j < 8 * 64; j++) b[j] = 2;
        if (slc_gemm(&stream, &s, a, b, NULL, c, workspace, sizeof workspace)) return failures;
        for (uint64_t j = 0; j < 4 * s.n; j++)
            if (c[j] != 16.0f) return failures;
    }
    return NULL;
}

static void from_several_threads(void **state)
{
    (void)state;
    slc_stream stream = test_stream(1);
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
    slc_stream stream = test_stream(1);
    float x[64] = {0};
    uint64_t bytes;
    slc_gemm_shape none = {.m = 0, .n = 4, .k = 4}, overlap = {.m = 4, .n = 4, .k = 4, .lda = 3},
                   plain = {.m = 4, .n = 4, .k = 4};
    assert_int_equal(slc_gemm_workspace_bytes(&stream, &none, &bytes), SLUICE_ERR_ARGUMENT);
    assert_int_equal(slc_gemm(&stream, &overlap, x, x, NULL, x, NULL, 0), SLUICE_ERR_ARGUMENT);
    assert_int_equal(slc_gemm(&stream, &plain, x, x, x, x, NULL, 0), SLUICE_ERR_ARGUMENT);
    slc_stream_destroy(&stream);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_float64),
        cmocka_unit_test(repeats_to_the_bit),
        cmocka_unit_test(from_several_threads),
        cmocka_unit_test(wrong_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
