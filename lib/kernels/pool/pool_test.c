/* Pooling must agree with float64 for both kinds and types, with equal bits for every instruction set and thread
 * count. */
#include "tests/support/kernels/arrays.h"
#include "lib/base/element.h"
#include "lib/kernels/pool/pool.h"

/* Returns `count` elements of x as `dtype`; x becomes their rounded values. The caller frees the result. */
static void *as_type(sluice_dtype dtype, uint64_t count, float *x)
{
    void *out = test_floats(count);
    if (dtype == SLUICE_FP32) return memcpy(out, x, count * sizeof *x);
    for (uint64_t i = 0; i < count; i++) {
        ((uint16_t *)out)[i] = sluice_bf16_from_float(x[i]);
        x[i] = sluice_bf16_to_float(((uint16_t *)out)[i]);
    }
    return out;
}

static void widen(sluice_dtype dtype, uint64_t count, const void *x, float *out)
{
    for (uint64_t i = 0; i < count; i++) out[i] = slc_element_value(x, dtype, i);
}

static void check(sluice_dtype dtype, slc_pool_kind kind, uint64_t batch, uint64_t tokens, uint64_t channels)
{
    uint64_t all = batch * tokens * channels, some = batch * channels;
    float *x = test_uniform_floats(all, -1, 1, 1), *dy = test_uniform_floats(some, -1, 1, 2);
    void *typed_x = as_type(dtype, all, x), *typed_dy = as_type(dtype, some, dy);
    void *y = test_floats(some), *dx = test_floats(all);
    double *x64 = test_widen(all, x), *dy64 = test_widen(some, dy), *y64 = test_doubles(some),
           *dx64 = test_doubles(all);
    slc_pool_args forward = {
        .dtype = dtype, .kind = kind, .batch = batch, .tokens = tokens, .channels = channels, .from = x64, .to = y64};
    slc_pool_args backward = forward;
    backward.from = dy64, backward.to = dx64;
    slc_pool_forward_ref(&forward);
    slc_pool_backward_ref(&backward);
    forward.from = typed_x, forward.to = y, backward.from = typed_dy, backward.to = dx;
    /* with few elements half a unit of the last place, with many its root mean square */
    double bar = dtype == SLUICE_FP32 ? 1e-6 : some < 64 ? 4e-3 : 2e-3;
    float *first[2] = {0}, *got_y = test_floats(some), *got_dx = test_floats(all);
    TEST_EACH_WAY_OF(way, all)
    for (uint32_t threads = 1; threads <= 3; threads++) {
        sluice_stream stream = test_stream(threads);
        assert_int_equal(slc_pool_forward(&stream, &forward), SLUICE_OK);
        assert_int_equal(slc_pool_backward(&stream, &backward), SLUICE_OK);
        widen(dtype, some, y, got_y);
        widen(dtype, all, dx, got_dx);
        test_close("y", some, got_y, y64, bar);
        test_close("dx", all, got_dx, dx64, bar);
        test_same_bits("y", some, got_y, &first[0]);
        test_same_bits("dx", all, got_dx, &first[1]);
        slc_stream_destroy(&stream);
    }
    test_release(x), test_release(dy), test_release(typed_x), test_release(typed_dy), test_release(y), test_release(dx),
        test_release(got_y), test_release(got_dx);
    test_release(x64), test_release(dy64), test_release(y64), test_release(dx64), test_release(first[0]),
        test_release(first[1]);
}

static void agrees_with_float64(void **state)
{
    (void)state;
    const uint64_t tokens[] = {2, 8, 197, 512}, channels[] = {1, 16, 48, 100};
    for (size_t t = 0; t < TEST_COUNT_OF(tokens); t++)
        for (size_t c = 0; c < TEST_COUNT_OF(channels); c++)
            for (int dtype = SLUICE_FP32; dtype <= SLUICE_BF16; dtype++) {
                check((sluice_dtype)dtype, SLC_POOL_FIRST, 3, tokens[t], channels[c]);
                check((sluice_dtype)dtype, SLC_POOL_MEAN_OF_REST, 3, tokens[t], channels[c]);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(agrees_with_float64)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
