/* The emulated fused multiply-add of the baseline, and the tree of sums. Compiled as the baseline is. */
#include "lib/kernels/kernel_test.h"
#include "lib/kernels/lanes.h"

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
            /* a third each: anything; near in size, so that sums cancel; halfway cases and subnormals */
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fma_is_fused),
        cmocka_unit_test(sums_and_tails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
