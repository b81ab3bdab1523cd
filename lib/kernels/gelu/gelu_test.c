/* GELU, tanh and their derivatives must agree with float64, also in place, with equal bits for every instruction set
 * and number of threads. */
#include "lib/kernels/gelu/gelu.h"
#include "tests/support/kernels/arrays.h"

#include <float.h>

typedef struct {
    uint64_t count;
    float low, high;
} inputs;

enum { PLAIN_TANH = 2, FUNCTIONS = 3 }; /* tanh follows the two kinds of GELU */

static void reference(int function, uint64_t count, const double *x, const double *dy, double *y, double *dx)
{
    if (function == PLAIN_TANH) {
        slc_tanh_forward_ref(count, x, y);
    } else {
        slc_gelu_forward_ref((slc_gelu_kind)function, count, x, y);
        slc_gelu_backward_ref((slc_gelu_kind)function, count, x, dy, dx);
    }
}

static void forward(sluice_stream *stream, int function, sluice_dtype dtype, uint64_t count, const void *x, void *y)
{
    assert_int_equal(function == PLAIN_TANH ? slc_tanh_forward(stream, dtype, count, x, y)
                                            : slc_gelu_forward(stream, (slc_gelu_kind)function, dtype, count, x, y),
                     SLUICE_OK);
}

static void backward(sluice_stream *stream, int function, sluice_dtype dtype, uint64_t count, const void *x,
                     const void *dy, void *dx)
{
    assert_int_equal(function == PLAIN_TANH
                         ? slc_tanh_backward(stream, dtype, count, x, dy, dx)
                         : slc_gelu_backward(stream, (slc_gelu_kind)function, dtype, count, x, dy, dx),
                     SLUICE_OK);
}

/* Returns the relative error that is allowed. In ranges around 0 most inputs may lie where the function is nearly 0, as
 * GELU's derivative is at -0.75: then the rounding of `given`, and not that of `results`, decides how large errors are.
 * If there are few inputs, a single one decides, so more is allowed. In ranges of far negative numbers all results are
 * tiny, so the bar is a relative one there, and wider, since exponents of up to 80 are rounded. */
static double bar_of(inputs in, const double *results, const double *given)
{
    double small = 0, large = 0;
    for (uint64_t i = 0; i < in.count; i++) small += results[i] * results[i], large += given[i] * given[i];
    if (in.high <= -3) return 4e-6;
    const double bar = in.count < 100 ? 3e-6 : 1e-6;
    return fmin(1, bar * fmax(1, small > 0 ? 0.1 * sqrt(large / small) : 0));
}

/* The kernels' exponentials are 0 if they would be subnormal, and what multiplies them is below 300 there. */
static void forget_tiny(sluice_dtype dtype, uint64_t count, const void *got, double *want)
{
    double *x = test_widen_typed(dtype, count, got);
    for (uint64_t i = 0; i < count; i++)
        if (x[i] == 0 && fabs(want[i]) < 300 * (double)FLT_MIN) want[i] = 0;
    test_release(x);
}

static void check(int function, sluice_dtype dtype, inputs in, uint32_t threads, float *first[2])
{
    const uint64_t count = in.count;
    sluice_stream stream = test_stream(threads);
    void *x = test_uniform_typed(dtype, count, in.low, in.high, 1), *dy = test_uniform_typed(dtype, count, -1, 1, 2);
    void *y = test_floats(count), *dx = test_floats(count);
    double *x64 = test_widen_typed(dtype, count, x), *dy64 = test_widen_typed(dtype, count, dy),
           *y64 = test_doubles(count), *dx64 = test_doubles(count);
    reference(function, count, x64, dy64, y64, dx64);

    forward(&stream, function, dtype, count, x, y);
    const void *read = function == PLAIN_TANH ? y : x; /* tanh's derivative is a function of its result */
    if (function == PLAIN_TANH) {
        double *rounded = test_widen_typed(dtype, count, y);
        slc_tanh_backward_ref(count, rounded, dy64, dx64);
        test_release(rounded);
    }
    backward(&stream, function, dtype, count, read, dy, dx);
    forget_tiny(dtype, count, y, y64);
    forget_tiny(dtype, count, dx, dx64);
    test_close_typed("y", dtype, count, y, y64, bar_of(in, y64, x64), 2e-3);
    test_close_typed("dx", dtype, count, dx, dx64, bar_of(in, dx64, dy64), 2e-3);
    test_same_bits_typed("y", dtype, count, y, &first[0]);
    test_same_bits_typed("dx", dtype, count, dx, &first[1]);

    backward(&stream, function, dtype, count, read, dy, dy);
    forward(&stream, function, dtype, count, x, x);
    test_same_bits_typed("y in place", dtype, count, x, &first[0]);
    test_same_bits_typed("dx in place", dtype, count, dy, &first[1]);
    test_release(x), test_release(dy), test_release(y), test_release(dx), test_release(x64), test_release(dy64),
        test_release(y64), test_release(dx64);
    slc_stream_destroy(&stream);
}

static void agrees_with_float64(void **state)
{
    (void)state;
    const uint64_t counts[] = {1, 15, 16, 197, 20001, 8, 17, 64, 512, 1000, 1024, 50001};
    const float ranges[][2] = {{-1e-3f, 1e-3f}, {-1, 1}, {-5, 5}, {-30, 30}, {-6, -3}, {-9, -7}, {-12.5f, -11.5f}};
    for (int function = 0; function < FUNCTIONS; function++) TEST_EACH_DTYPE(dtype)
    for (size_t c = 0; c < TEST_SHAPES(counts, 5); c++)
        for (size_t r = 0; r < TEST_COUNT_OF(ranges); r++) {
            const inputs in = {counts[c], ranges[r][0], ranges[r][1]};
            if (test_brief() && in.count > 200 && r != 2) continue;
            if (function == SLC_GELU_TANH && in.high < -6) continue; /* the exponent is a polynomial of large terms */
            if (function == PLAIN_TANH && in.high < -1) continue;    /* 1 - y^2 of a y that was rounded to 1 */
            float *first[2] = {0};
            TEST_EACH_WAY_OF(way, in.count)
            for (uint32_t threads = 1; threads <= 2; threads++) check(function, dtype, in, threads, first);
            test_release(first[0]), test_release(first[1]);
        }
}

/* Results in bf16 are those in fp32, rounded once, for each number that there is. */
static void bf16_is_fp32_rounded(void **state)
{
    (void)state;
    enum { CODES = 1 << 16 };
    sluice_stream stream = test_stream(1);
    uint16_t *x = (uint16_t *)test_floats(CODES), *dy = (uint16_t *)test_floats(CODES),
             *out = (uint16_t *)test_floats(CODES);
    float *wide = test_floats(CODES), *wide_dy = test_floats(CODES), *expected = test_floats(CODES);
    for (uint32_t i = 0; i < CODES; i++) {
        x[i] = (uint16_t)i, dy[i] = (uint16_t)(0x3f00 + i * 40503u % 512);
        wide[i] = sluice_bf16_to_float(x[i]), wide_dy[i] = sluice_bf16_to_float(dy[i]);
    }
    for (int kind = 0; kind < 2; kind++)
        for (int back = 0; back < 2; back++) {
            if (back) {
                backward(&stream, kind, SLUICE_BF16, CODES, x, dy, out);
                backward(&stream, kind, SLUICE_FP32, CODES, wide, wide_dy, expected);
            } else {
                forward(&stream, kind, SLUICE_BF16, CODES, x, out);
                forward(&stream, kind, SLUICE_FP32, CODES, wide, expected);
            }
            for (uint32_t i = 0; i < CODES; i++)
                if (isnan(expected[i]) ? !isnan(sluice_bf16_to_float(out[i]))
                                       : out[i] != sluice_bf16_from_float(expected[i]))
                    fail_msg("kind %d, backward %d: of %04x %04x, not %04x", kind, back, (unsigned)i, (unsigned)out[i],
                             (unsigned)sluice_bf16_from_float(expected[i]));
        }
    test_release(x), test_release(dy), test_release(out), test_release(wide), test_release(wide_dy),
        test_release(expected);
    slc_stream_destroy(&stream);
}

static void extremes_saturate(void **state)
{
    (void)state;
    const float gelu_x[] = {-1e30f, -1000, -100, 0, 100, 1000, 1e18f, NAN}, ones[] = {1, 1, 1, 1, 1, 1, 1, 1};
    const float tanh_x[] = {-INFINITY, -50, -0.0f, 0, 50, INFINITY, NAN};
    float *x = test_floats(8), *dy = test_copy(8, ones), *y = test_floats(8), *dx = test_floats(8);
    for (int kind = SLC_GELU_TANH; kind <= SLC_GELU_ERF; kind++) TEST_EACH_WAY(way)
        {
            sluice_stream stream = test_stream(1);
            memcpy(x, gelu_x, sizeof gelu_x);
            forward(&stream, kind, SLUICE_FP32, 8, x, y);
            backward(&stream, kind, SLUICE_FP32, 8, x, dy, dx);
            for (int i = 0; i < 4; i++) assert_true(y[i] == 0.0f);
            for (int i = 4; i < 7; i++) assert_true(y[i] == x[i]);
            for (int i = 1; i < 3; i++) assert_true(dx[i] == 0.0f);
            assert_true(dx[3] == 0.5f && dx[4] == 1.0f && dx[5] == 1.0f);
            assert_true(isnan(y[7]) && isnan(dx[7]));
            slc_stream_destroy(&stream);
        }
    TEST_EACH_WAY(way)
    {
        sluice_stream stream = test_stream(1);
        memcpy(x, tanh_x, sizeof tanh_x);
        forward(&stream, PLAIN_TANH, SLUICE_FP32, 7, x, y);
        assert_true(y[0] == -1 && y[1] == -1 && signbit(y[2]) && y[2] == 0 && y[3] == 0 && y[4] == 1 && y[5] == 1);
        assert_true(isnan(y[6]));
        slc_stream_destroy(&stream);
    }
    test_release(x), test_release(dy), test_release(y), test_release(dx);
}

/* Results above 16 MiB are stored past the cache; a piece of them must have the bits that it has alone. */
static void large_as_small(void **state)
{
    (void)state;
    const uint64_t from = 4096 * 3, piece = 1000;
    TEST_EACH_DTYPE(dtype) TEST_EACH_ISA(isa)
    {
        const uint64_t count = (16 << 20) / sluice_dtype_bytes(dtype) + 1000;
        sluice_stream stream = test_stream(2);
        char *x = test_repeated_typed(dtype, count, -5, 5, 1), *y = (char *)test_floats(count),
             *alone = (char *)test_floats(piece);
        const size_t size = sluice_dtype_bytes(dtype), last = (count - piece) * size;
        forward(&stream, SLC_GELU_TANH, dtype, count, x, y);
        forward(&stream, SLC_GELU_TANH, dtype, piece, x + from * size, alone);
        assert_memory_equal(alone, y + from * size, piece * size);
        forward(&stream, SLC_GELU_TANH, dtype, piece, x + last, alone);
        assert_memory_equal(alone, y + last, piece * size);
        test_release(x), test_release(y), test_release(alone);
        slc_stream_destroy(&stream);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_float64),
        cmocka_unit_test(bf16_is_fp32_rounded),
        cmocka_unit_test(extremes_saturate),
        cmocka_unit_test(large_as_small),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
