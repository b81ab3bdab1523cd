/* Loss and gradient must agree with float64, with equal bits for every instruction set and thread count. */
#include "lib/kernels/cross_entropy/cross_entropy.h"
#include "tests/support/kernels/arrays.h"

static int32_t *draw_targets(uint64_t rows, uint64_t classes)
{
    uint64_t seed = 5;
    int32_t *targets = test_bytes(rows * sizeof *targets);
    assert_non_null(targets);
    for (uint64_t i = 0; i < rows; i++) targets[i] = i % 5 == 3 ? -1 : (int32_t)(test_random(&seed) % classes);
    return targets;
}

enum { GAP = -7 }; /* every element between two rows */

static float *spread_rows(uint64_t rows, uint64_t classes, uint64_t stride, const float *logits)
{
    float *out = test_floats(rows * stride);
    for (uint64_t i = 0; i < rows * stride; i++) out[i] = GAP;
    for (uint64_t row = 0; row < rows; row++) memcpy(out + row * stride, logits + row * classes, classes * sizeof *out);
    return out;
}

/* Returns the gradient of all rows without the gaps between them, which must be as they were. */
static void *gather_rows(uint64_t rows, uint64_t classes, uint64_t stride, sluice_dtype gradient, const float *logits)
{
    uint64_t bytes = classes * sluice_dtype_bytes(gradient);
    unsigned char *out = (unsigned char *)test_floats(rows * classes);
    for (uint64_t row = 0; row < rows; row++) {
        memcpy(out + row * bytes, logits + row * stride, bytes);
        for (uint64_t i = classes; i < stride; i++) assert_true(logits[row * stride + i] == GAP);
    }
    return out;
}

static void check_rows(sluice_dtype gradient, uint64_t rows, uint64_t classes, uint64_t stride, float range,
                       float smoothing, float scale)
{
    uint64_t count = rows * classes;
    int32_t *targets = draw_targets(rows, classes);
    float *logits = test_uniform_floats(count, -range, range, 1), *losses = test_floats(rows),
          *first[2][TEST_KINDS] = {{0}};
    double *logits64 = test_widen(count, logits), *losses64 = test_doubles(rows);
    slc_cross_entropy_args args = {.gradient = gradient,
                                   .rows = rows,
                                   .classes = classes,
                                   .stride = classes,
                                   .logits = logits64,
                                   .targets = targets,
                                   .smoothing = smoothing,
                                   .gradient_scale = scale,
                                   .losses = losses64};
    slc_cross_entropy_ref(&args);
    args.stride = stride, args.losses = losses;

    TEST_EACH_WAY_OF(way, count)
    for (uint32_t threads = 1; threads <= 2; threads++) {
        sluice_stream stream = test_stream(threads);
        float *x = spread_rows(rows, classes, stride, logits);
        args.logits = x;
        assert_int_equal(slc_cross_entropy(&stream, &args), SLUICE_OK);
        for (uint64_t row = 0; row < rows; row++)
            assert_true(fabs((double)losses[row] - losses64[row]) <= 1e-6 * fabs(losses64[row]) + 1e-7);
        test_same_bits("losses", rows, losses, TEST_FIRST(first[0]));
        void *got = gather_rows(rows, classes, stride, scale == 0.0f ? SLUICE_FP32 : gradient, x);
        if (scale == 0.0f) {
            assert_memory_equal(got, logits, count * sizeof *x);
        } else {
            test_close_typed("dlogits", gradient, count, got, logits64, 1e-6, 2e-3);
            test_same_bits_typed("dlogits", gradient, count, got, TEST_FIRST(first[1]));
        }
        test_release(got), test_release(x);
        slc_stream_destroy(&stream);
    }
    test_release(targets), test_release(logits), test_release(losses), test_release(first[0][0]),
        test_release(first[0][1]), test_release(first[1][0]), test_release(first[1][1]), test_release(logits64),
        test_release(losses64);
}

static void check(sluice_dtype gradient, uint64_t rows, uint64_t classes, float range, float smoothing, float scale)
{
    const uint64_t padded = (classes + 63) / 64 * 64;
    check_rows(gradient, rows, classes, classes, range, smoothing, scale);
    if (padded > classes) check_rows(gradient, rows, classes, padded, range, smoothing, scale);
}

static void agrees_with_float64(void **state)
{
    (void)state;
    const uint64_t classes[] = {1, 15, 64, 65, 1000, 2, 16, 17, 63, 50257}, rows[] = {8, 197, 512, 1000, 1024};
    TEST_EACH_DTYPE(gradient)
    {
        for (size_t c = 0; c < TEST_SHAPES(classes, 5); c++) {
            check(gradient, 8, classes[c], 4, 0, 0.125f);
            check(gradient, 5, classes[c], 60, 0, 1);
            check(gradient, 3, classes[c], 4, 0, 0);
            check(gradient, 8, classes[c], 4, 0.1f, 0.125f);
            check(gradient, 3, classes[c], 60, 0.9f, 1);
            check(gradient, 3, classes[c], 4, 0.1f, 0);
        }
        for (size_t r = 0; r < TEST_SHAPES(rows, 1); r++) check(gradient, rows[r], 257, 10, 0, 1.0f / (float)rows[r]);
    }
}

static void large_logits_and_nan(void **state)
{
    (void)state;
    const float large[] = {1e30f, -1e30f, 0, 3}, with_nan[] = {0, NAN, 1, 2};
    TEST_EACH_WAY(way)
    {
        sluice_stream stream = test_stream(1);
        float *x = test_copy(4, large), *y = test_copy(4, with_nan), *loss = test_floats(1);
        int32_t *target = test_bytes(sizeof *target);
        *target = 0;
        slc_cross_entropy_args args = {
            .rows = 1, .classes = 4, .stride = 4, .logits = x, .targets = target, .gradient_scale = 1, .losses = loss};
        assert_int_equal(slc_cross_entropy(&stream, &args), SLUICE_OK);
        assert_true(*loss == 0.0f && x[0] == 0.0f && x[1] == 0.0f && x[2] == 0.0f && x[3] == 0.0f);
        args.logits = y;
        assert_int_equal(slc_cross_entropy(&stream, &args), SLUICE_OK);
        assert_true(isnan(*loss));
        test_release(x), test_release(y), test_release(loss), test_release(target);
        slc_stream_destroy(&stream);
    }
}

/* The gradient of smoothed targets against differences of the reference's losses, so that it does not rest on the
 * reference's own derivative. */
static void smoothed_gradient_is_the_losses_slope(void **state)
{
    (void)state;
    enum { CLASSES = 37 };
    const float smoothing = 0.2f;
    const double step = 1e-4;
    TEST_EACH_WAY(way)
    {
        sluice_stream stream = test_stream(1);
        float *x = test_uniform_floats(CLASSES, -3, 3, 9), *before = test_copy(CLASSES, x), *loss = test_floats(1);
        int32_t *target = test_bytes(sizeof *target);
        *target = 11;
        slc_cross_entropy_args args = {.rows = 1,
                                       .classes = CLASSES,
                                       .stride = CLASSES,
                                       .logits = x,
                                       .targets = target,
                                       .smoothing = smoothing,
                                       .gradient_scale = 1,
                                       .losses = loss};
        assert_int_equal(slc_cross_entropy(&stream, &args), SLUICE_OK);
        args.gradient_scale = 0;
        for (int c = 0; c < CLASSES; c++) {
            double at[2][CLASSES], losses[2];
            for (int side = 0; side < 2; side++) {
                for (int i = 0; i < CLASSES; i++) at[side][i] = (double)before[i];
                at[side][c] += side ? step : -step;
                args.logits = at[side], args.losses = &losses[side];
                slc_cross_entropy_ref(&args);
            }
            assert_true(fabs((losses[1] - losses[0]) / (2 * step) - (double)x[c]) < 1e-6);
        }
        test_release(x), test_release(before), test_release(loss), test_release(target);
        slc_stream_destroy(&stream);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_float64),
        cmocka_unit_test(large_logits_and_nan),
        cmocka_unit_test(smoothed_gradient_is_the_losses_slope),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
