/* Both figures must agree with float64 for both types, with equal bits for every instruction set and thread count of
 * the host, and for those of a GPU; a row beside itself has 1 and 1, beside its negative 1 and -1, and a row of zeros
 * has no angle. */
#include "tests/support/kernels/arrays.h"
#include "lib/kernels/likeness/likeness.h"

static void check(sluice_dtype dtype, uint64_t rows, uint64_t channels)
{
    const uint64_t count = rows * channels;
    void *x = test_uniform_typed(dtype, count, -1, 2, 1), *y = test_uniform_typed(dtype, count, -3, 1, 2);
    double *x64 = test_widen_typed(dtype, count, x), *y64 = test_widen_typed(dtype, count, y),
           *want = test_doubles(2 * rows);
    slc_likeness_ref(&(slc_likeness_args){.rows = rows, .channels = channels, .x = x64, .y = y64, .out = want});
    float *first[TEST_KINDS] = {0};
    TEST_EACH_WAY_OF(way, count)
    for (uint32_t threads = 1; threads <= 2; threads++) {
        sluice_stream stream = test_stream(threads);
        float *out = test_floats(2 * rows);
        const slc_likeness_args args = {.dtype = dtype, .rows = rows, .channels = channels, .x = x, .y = y, .out = out};
        assert_int_equal(slc_likeness(&stream, &args), SLUICE_OK);
        test_close("likeness", 2 * rows, out, want, 1e-5);
        test_same_bits("likeness", 2 * rows, out, TEST_FIRST(first));
        test_release(out);
        slc_stream_destroy(&stream);
    }
    test_release(x), test_release(y), test_release(x64), test_release(y64), test_release(want), test_release(first[0]),
        test_release(first[1]);
}

static void agrees_with_float64(void **state)
{
    (void)state;
    const uint64_t rows[] = {1, 7, 64, 300}, channels[] = {1, 15, 16, 100, 768};
    for (size_t r = 0; r < TEST_COUNT_OF(rows); r++)
        for (size_t c = 0; c < TEST_COUNT_OF(channels); c++) TEST_EACH_DTYPE(dtype) check(dtype, rows[r], channels[c]);
}

static void has_its_ends(void **state)
{
    (void)state;
    enum { CHANNELS = 21 };
    sluice_stream stream = test_stream(1);
    float *x = test_uniform_floats(3 * CHANNELS, 1, 2, 5), *y = test_floats(3 * CHANNELS), out[6];
    for (int i = 0; i < 3 * CHANNELS; i++) y[i] = i < CHANNELS ? x[i] : i < 2 * CHANNELS ? -x[i] : 0;
    const slc_likeness_args there = {.rows = 3, .channels = CHANNELS, .x = x, .y = y, .out = out},
                            back = {.rows = 3, .channels = CHANNELS, .x = y, .y = x, .out = out};
    const double ends[] = {1, 1, 1, -1, 0, 0};
    assert_int_equal(slc_likeness(&stream, &there), SLUICE_OK);
    test_close("likeness", 6, out, ends, 1e-6);
    assert_int_equal(slc_likeness(&stream, &back), SLUICE_OK);
    test_close("likeness", 6, out, ends, 1e-6);
    test_release(x), test_release(y);
    slc_stream_destroy(&stream);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(agrees_with_float64), cmocka_unit_test(has_its_ends)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
