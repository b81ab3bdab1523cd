/* The baseline's emulated fused multiply-add, exp, and the tree of sums. Compiled like the baseline. */
#include "tests/support/kernels/arrays.h"
#include "lib/kernels/lanes_math.h"

static void fma_is_fused(void **state)
{
    (void)state;
    uint64_t seed = 1;
    for (int round = 0; round < 200000; round++) {
        float a[LANES], b[LANES], c[LANES], got[LANES];
        for (int i = 0; i < LANES; i++) {
            uint32_t bits[3];
            for (int k = 0; k < 3; k++) bits[k] = (uint32_t)test_random(&seed);
            memcpy(&a[i], &bits[0], 4), memcpy(&b[i], &bits[1], 4), memcpy(&c[i], &bits[2], 4);
            /* a third each: any numbers; sums that nearly cancel; halfway cases and subnormals */
            if (i % 3 == 1) c[i] = -a[i] * b[i] * (1 + (float)(bits[2] % 5) * 0x1p-23f);
            if (i % 3 == 2)
                a[i] = ldexpf((float)(bits[0] % 4096), (int)(bits[1] % 250) - 149), b[i] = 0x1.000002p0f,
                c[i] = ldexpf(a[i], (int)(bits[2] % 60) - 30);
        }
        lanes_store(got, lanes_fma(lanes_load(a), lanes_load(b), lanes_load(c)));
        for (int i = 0; i < LANES; i++) {
            float want = fmaf(a[i], b[i], c[i]);
            if (isnan(want) && isnan(got[i])) continue;
            if (memcmp(&want, &got[i], sizeof want))
                fail_msg("fma(%a, %a, %a) is %a, not %a", (double)a[i], (double)b[i], (double)c[i], (double)want,
                         (double)got[i]);
        }
    }
}

static void sums_and_tails(void **state)
{
    (void)state;
    float x[LANES], out[LANES + 1];
    for (int i = 0; i < LANES; i++) x[i] = (float)(1 << i);
    assert_true(lanes_sum(lanes_load(x)) == 65535.0f);
    assert_true(lanes_largest(lanes_load(x)) == 32768.0f);
    for (uint64_t n = 1; n < LANES; n++) {
        for (int i = 0; i <= LANES; i++) out[i] = -1;
        lanes tail = lanes_load_tail(x, n, 0.0f);
        assert_true(lanes_sum(tail) == (float)((1 << n) - 1));
        lanes_store_tail(out, n, tail);
        assert_memory_equal(out, x, n * sizeof *x);
        assert_true(out[n] == -1);
    }
}

/* Rounding must follow the scalar rule for every upper half, with lower halves around a tie and random ones. */
static void bf16_rounds_as_the_scalar_rule(void **state)
{
    (void)state;
    uint64_t seed = 5;
    for (uint32_t high = 0; high < 0x10000; high++) {
        float x[LANES], back[LANES];
        uint16_t got[LANES], some[LANES] = {0};
        const uint32_t low[] = {0, 1, 0x7fff, 0x8000, 0x8001, 0xffff};
        for (int i = 0; i < LANES; i++) {
            uint32_t bits = high << 16 | (i < 6 ? low[i] : (uint32_t)test_random(&seed) & 0xffff);
            memcpy(&x[i], &bits, sizeof bits);
        }
        lanes_store_as(SLUICE_BF16, got, 0, lanes_load(x));
        lanes_store_some_as(SLUICE_BF16, some, 0, high % LANES, lanes_load(x));
        lanes_store(back, lanes_load_as(SLUICE_BF16, got, 0));
        for (uint64_t i = 0; i < LANES; i++) {
            uint16_t want = sluice_bf16_from_float(x[i]);
            float widened = sluice_bf16_to_float(want);
            assert_int_equal(got[i], want);
            assert_int_equal(some[i], i < high % LANES ? want : 0);
            assert_memory_equal(&back[i], &widened, sizeof widened);
            assert_true(isnan(x[i])
                            ? isnan(widened)
                            : fabsf(widened - x[i]) <= fabsf(x[i]) / 256 || isinf(widened) || fabsf(x[i]) < 0x1p-120f);
        }
    }
}

static void exp_is_within_two_ulp(void **state)
{
    (void)state;
    uint64_t seed = 3;
    for (int round = 0; round < 20000; round++) {
        float x[LANES], y[LANES];
        for (int i = 0; i < LANES; i++) x[i] = test_uniform(&seed, -87.0f, round % 2 ? 88.0f : 1.0f);
        lanes_store(y, lanes_exp(lanes_load(x)));
        for (int i = 0; i < LANES; i++) {
            double want = exp((double)x[i]), ulp = ldexp(1.0, ilogb(want) - 23);
            if (!(fabs((double)y[i] - want) <= 2 * ulp)) fail_msg("exp(%a) is %a", (double)x[i], (double)y[i]);
        }
    }
    const float edge[LANES] = {0, -0.0f, -88.5f, -1e30f, -INFINITY, 89, 1e30f, INFINITY, NAN};
    float y[LANES];
    lanes_store(y, lanes_exp(lanes_load(edge)));
    assert_true(y[0] == 1 && y[1] == 1 && y[2] == 0 && y[3] == 0 && y[4] == 0);
    assert_true(isinf(y[5]) && isinf(y[6]) && isinf(y[7]) && isnan(y[8]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fma_is_fused),
        cmocka_unit_test(sums_and_tails),
        cmocka_unit_test(bf16_rounds_as_the_scalar_rule),
        cmocka_unit_test(exp_is_within_two_ulp),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
