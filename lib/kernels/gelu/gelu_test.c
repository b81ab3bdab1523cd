/* GELU and its derivative against float64, in place too, with equal bits for every instruction set. */
#include "lib/kernels/gelu/gelu.h"
#include "lib/kernels/gelu/gelu_ref.h"
#include "lib/kernels/kernel_test.h"

static void check(uint64_t count, float range, uint32_t threads, float *first[2])
{
    slc_stream stream = test_stream(threads);
    float *x = test_uniform_floats(count, -range, range, 1), *dy = test_uniform_floats(count, -1, 1, 2);
    float *y = test_floats(count), *dx = test_floats(count);
    double *x64 = test_widen(count, x), *dy64 = test_widen(count, dy), *y64 = test_doubles(count),
           *dx64 = test_doubles(count);
    slc_gelu_forward_ref(count, x64, y64);
    slc_gelu_backward_ref(count, x64, dy64, dx64);

    assert_int_equal(slc_gelu_forward(&stream, count, x, y), SLUICE_OK);
    assert_int_equal(slc_gelu_backward(&stream, count, x, dy, dx), SLUICE_OK);
    test_close("y", count, y, y64, 1e-6);
    test_close("dx", count, dx, dx64, 1e-6);
    test_same_bits("y", count, y, &first[0]);
    test_same_bits("dx", count, dx, &first[1]);

    assert_int_equal(slc_gelu_backward(&stream, count, x, dy, dy), SLUICE_OK);
    assert_int_equal(slc_gelu_forward(&stream, count, x, x), SLUICE_OK);
    test_same_bits("y in place", count, x, &first[0]);
    test_same_bits("dx in place", count, dy, &first[1]);
    free(x), free(dy), free(y), free(dx), free(x64), free(dy64), free(y64), free(dx64);
    slc_stream_destroy(&stream);
}

static void agrees_with_float64(void **state)
{
    (void)state;
    const uint64_t counts[] = {1, 8, 15, 16, 17, 64, 197, 512, 50001};
    const float ranges[] = {1e-3f, 1, 5, 30};
    for (size_t c = 0; c < TEST_COUNT_OF(counts); c++)
        for (size_t r = 0; r < TEST_COUNT_OF(ranges); r++) {
            float *first[2] = {0};
            TEST_EACH_ISA(isa)
            for (uint32_t threads = 1; threads <= 2; threads++) check(counts[c], ranges[r], threads, first);
            free(first[0]), free(first[1]);
        }
}

static void extremes_saturate(void **state)
{
    (void)state;
    slc_stream stream = test_stream(1);
    TEST_EACH_ISA(isa)
    {
        float x[] = {-1e30f, -1000, -100, 0, 100, 1000, 1e18f, NAN}, dy[] = {1, 1, 1, 1, 1, 1, 1, 1}, y[8], dx[8];
        slc_gelu_forward(&stream, 8, x, y);
        slc_gelu_backward(&stream, 8, x, dy, dx);
        for (int i = 0; i < 4; i++) assert_true(y[i] == 0.0f);
        for (int i = 4; i < 7; i++) assert_true(y[i] == x[i]);
        for (int i = 1; i < 3; i++) assert_true(dx[i] == 0.0f);
        assert_true(dx[3] == 0.5f && dx[4] == 1.0f && dx[5] == 1.0f);
        assert_true(isnan(y[7]) && isnan(dx[7]));
    }
    slc_stream_destroy(&stream);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_float64),
        cmocka_unit_test(extremes_saturate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
