/* Additions are exact to the bit; column sums agree with float64 and have equal bits for every instruction set and
 * thread count. */
#include "lib/kernels/kernel_test.h"
#include "lib/kernels/residual/residual.h"
#include "lib/kernels/residual/residual_ref.h"

static void adds(void **state)
{
    (void)state;
    const uint64_t counts[] = {1, 8, 15, 16, 17, 64, 197, 512, 70001};
    for (size_t c = 0; c < TEST_COUNT_OF(counts); c++) TEST_EACH_ISA(isa)
    for (uint32_t threads = 1; threads <= 2; threads++) {
        uint64_t n = counts[c];
        slc_stream stream = test_stream(threads);
        float *a = test_uniform_floats(n, -1, 1, 1), *b = test_uniform_floats(n, -1, 1, 2), *out = test_floats(n);
        assert_int_equal(slc_add(&stream, n, a, b, out), SLUICE_OK);
        for (uint64_t i = 0; i < n; i++) assert_true(out[i] == a[i] + b[i]);
        assert_int_equal(slc_add(&stream, n, a, b, b), SLUICE_OK);
        assert_memory_equal(b, out, n * sizeof *b);
        free(a), free(b), free(out);
        slc_stream_destroy(&stream);
    }
}

static void check_columns(uint64_t rows, uint64_t columns, int fresh)
{
    float *dy = test_uniform_floats(rows * columns, -1, 1, 1), *before = test_uniform_floats(columns, -1, 1, 2);
    double *dy64 = test_widen(rows * columns, dy), *want = test_widen(columns, before);
    float *first = NULL;
    slc_bias_backward_ref(rows, columns, dy64, want, fresh);
    TEST_EACH_ISA(isa)
    for (uint32_t threads = 1; threads <= 2; threads++) {
        slc_stream stream = test_stream(threads);
        float *dbias = test_copy(columns, before);
        void *workspace = test_floats(slc_bias_backward_workspace_bytes(&stream, rows, columns) / sizeof(float));
        assert_int_equal(slc_bias_backward(&stream, rows, columns, dy, dbias, fresh, workspace), SLUICE_OK);
        test_close("dbias", columns, dbias, want, 1e-5);
        test_same_bits("dbias", columns, dbias, &first);
        free(dbias), free(workspace);
        slc_stream_destroy(&stream);
    }
    free(dy), free(before), free(dy64), free(want), free(first);
}

static void sums_columns(void **state)
{
    (void)state;
    const uint64_t rows[] = {1, 7, 8, 64, 197, 512}, columns[] = {1, 15, 16, 33, 768, 1000};
    for (size_t r = 0; r < TEST_COUNT_OF(rows); r++)
        for (size_t c = 0; c < TEST_COUNT_OF(columns); c++)
            for (int fresh = 0; fresh < 2; fresh++) check_columns(rows[r], columns[c], fresh);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adds),
        cmocka_unit_test(sums_columns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
