/* The norm's bins must not depend on order or partition, and must hold the exact sum of the grains. */
#include "tests/support/kernels/arrays.h"
#include "lib/kernels/norm/norm.h"

enum { COUNT = 16 * 4001 };

/* Returns floats of every exponent: random bits, 0 in place of non-finite ones. */
static float *wild_floats(uint64_t count, uint64_t seed)
{
    float *x = test_floats(count);
    for (uint64_t i = 0; i < count; i++) {
        uint32_t bits = (uint32_t)test_random(&seed);
        memcpy(&x[i], &bits, sizeof bits);
        if (!isfinite(x[i])) x[i] = 0;
    }
    return x;
}

static int64_t *new_bins(void)
{
    int64_t *bins = test_bytes(SLC_NORM_BINS * sizeof *bins);
    memset(bins, 0, SLC_NORM_BINS * sizeof *bins);
    return bins;
}

static void bins_do_not_depend_on_order_or_partition(void **state)
{
    (void)state;
    float *sets[] = {wild_floats(COUNT, 1), test_uniform_floats(COUNT, -1, 1, 2),
                     test_uniform_floats(COUNT, -1e-22f, 1e-22f, 3)};
    for (size_t k = 0; k < TEST_COUNT_OF(sets); k++) {
        const float *x = sets[k];
        int64_t want[SLC_NORM_BINS] = {0};
        slc_norm_add_ref(COUNT, x, want);
        TEST_EACH_WAY(way)
        for (uint32_t threads = 1; threads <= 3; threads++) {
            sluice_stream stream = test_stream(threads);
            int64_t *whole = new_bins(), *pieces = new_bins();
            assert_int_equal(slc_norm_add(&stream, SLUICE_FP32, COUNT, x, whole), SLUICE_OK);
            assert_memory_equal(whole, want, sizeof want);

            uint64_t seed = 7, end = COUNT; /* pieces of random length, from the back */
            while (end > 0) {
                uint64_t grains = 1 + test_random(&seed) % 500, n = 16 * grains < end ? 16 * grains : end;
                end -= n;
                assert_int_equal(slc_norm_add(&stream, SLUICE_FP32, n, x + end, pieces), SLUICE_OK);
            }
            assert_memory_equal(pieces, want, sizeof want);
            test_release(whole), test_release(pieces);
            slc_stream_destroy(&stream);
        }
        test_release(sets[k]);
    }
}

static void tail_is_a_padded_grain(void **state)
{
    (void)state;
    float *x = test_uniform_floats(64, -1, 1, 1);
    memset(x + 37, 0, (48 - 37) * sizeof *x);
    TEST_EACH_WAY(way)
    {
        sluice_stream stream = test_stream(1);
        int64_t *tail = new_bins(), *padded = new_bins();
        slc_norm_add(&stream, SLUICE_FP32, 37, x, tail);
        slc_norm_add(&stream, SLUICE_FP32, 48, x, padded);
        assert_memory_equal(tail, padded, SLC_NORM_BINS * sizeof *tail);
        test_release(tail), test_release(padded);
        slc_stream_destroy(&stream);
    }
    test_release(x);
}

static void result_agrees_with_long_double(void **state)
{
    (void)state;
    const float scales[] = {1e-30f, 1e-15f, 1e-4f, 1, 1e8f, 1e19f, 1.6e38f};
    sluice_stream stream = test_stream(1);
    for (size_t i = 0; i < TEST_COUNT_OF(scales); i++) {
        float *x = test_uniform_floats(COUNT, -scales[i], scales[i], i);
        int64_t bins[SLC_NORM_BINS] = {0};
        slc_norm_add(&stream, SLUICE_FP32, COUNT, x, bins);
        double want = (double)sqrtl(slc_norm_sum_ref(COUNT, x)), got = slc_norm_result(bins);
        if (!(fabs(got - want) <= 1e-15 * want)) fail_msg("scale %g: %.17g, not %.17g", (double)scales[i], got, want);
        test_release(x);
    }
    slc_stream_destroy(&stream);
}

static void result_is_rounded_once(void **state)
{
    (void)state;
    sluice_stream stream = test_stream(1);
    uint64_t seed = 1;
    for (int i = 0; i < 2000; i++) { /* two grains of one element each, so that the sum has at most 64 bits */
        float x[32] = {0};
        x[0] = test_uniform(&seed, 0.5f, 1), x[16] = ldexpf(test_uniform(&seed, 0.5f, 1), -(int)(seed % 8));
        int64_t bins[SLC_NORM_BINS] = {0};
        slc_norm_add(&stream, SLUICE_FP32, 32, x, bins);
        /* 64 bits hold this sum of squares exactly, so only the root is rounded: it must be the nearest double */
        long double sum = (long double)x[0] * x[0] + (long double)x[16] * x[16];
        double got = slc_norm_result(bins);
        long double below = ((long double)got + (long double)nextafter(got, 0)) / 2;
        long double above = ((long double)got + (long double)nextafter(got, INFINITY)) / 2;
        assert_true(below <= sqrtl(sum) && sqrtl(sum) <= above);
    }
    float square[16] = {3.0f, 4.0f};
    int64_t bins[SLC_NORM_BINS] = {0}, none[SLC_NORM_BINS] = {0};
    slc_norm_add(&stream, SLUICE_FP32, 16, square, bins);
    assert_true(slc_norm_result(bins) == 5.0);
    assert_true(slc_norm_result(none) == 0.0);
    slc_stream_destroy(&stream);
}

/* If ranks pack their bins and the words are added, the sum must be that of the bins. */
static void packed_bins_add_up(void **state)
{
    (void)state;
    enum { RANKS = 5 };
    sluice_stream stream = test_stream(1);
    float *sets[] = {wild_floats(COUNT, 1), test_uniform_floats(COUNT, -1, 1, 2), test_floats(COUNT)};
    for (int i = 0; i < COUNT; i++) sets[2][i] = 0x1.fffffep127f;
    for (size_t k = 0; k < TEST_COUNT_OF(sets); k++) {
        int64_t whole[SLC_NORM_BINS] = {0}, sum[SLC_NORM_WORDS] = {0}, unpacked[SLC_NORM_BINS];
        for (uint64_t rank = 0; rank < RANKS; rank++) {
            int64_t bins[SLC_NORM_BINS] = {0}, words[SLC_NORM_WORDS], back[SLC_NORM_BINS];
            for (int again = 0; again < 50; again++) /* up to 2^18 grains of the largest floats */
                slc_norm_add(&stream, SLUICE_FP32, COUNT - 16 * rank, sets[k], bins);
            bins[SLC_NORM_BINS - 1] = rank == 3 && k == 1;
            slc_norm_pack(bins, words);
            slc_norm_unpack(words, back);
            assert_true(slc_norm_result(back) == slc_norm_result(bins));
            for (int i = 0; i < SLC_NORM_WORDS; i++) sum[i] += words[i];
            for (int i = 0; i < SLC_NORM_BINS; i++) whole[i] += bins[i];
        }
        slc_norm_unpack(sum, unpacked);
        assert_true(slc_norm_result(unpacked) == slc_norm_result(whole));
        assert_true(isinf(slc_norm_result(whole)) == (k == 1));
        test_release(sets[k]);
    }
    slc_stream_destroy(&stream);
}

static void extremes(void **state)
{
    (void)state;
    sluice_stream stream = test_stream(1);
    float largest[16], smallest[16] = {0x1p-149f};
    for (int i = 0; i < 16; i++) largest[i] = 0x1.fffffep127f;
    TEST_EACH_ISA(isa)
    {
        int64_t bins[SLC_NORM_BINS] = {0};
        slc_norm_add(&stream, SLUICE_FP32, 16, smallest, bins);
        assert_true(slc_norm_result(bins) == 0x1p-149);
        for (int i = 0; i < 100; i++) slc_norm_add(&stream, SLUICE_FP32, 16, largest, bins);
        assert_true(fabs(slc_norm_result(bins) / (40.0 * 0x1.fffffep127) - 1) < 1e-15);
    }
    slc_stream_destroy(&stream);
}

static void non_finite_is_seen(void **state)
{
    (void)state;
    const float bad[] = {NAN, -NAN, INFINITY, -INFINITY};
    float *x = test_uniform_floats(COUNT, -1, 1, 1);
    TEST_EACH_WAY(way)
    for (uint32_t threads = 1; threads <= 2; threads++) {
        sluice_stream stream = test_stream(threads);
        bool *finite = test_bytes(1);
        *finite = true;
        assert_int_equal(slc_all_finite(&stream, SLUICE_FP32, COUNT, x, finite), SLUICE_OK);
        assert_true(*finite);
        for (size_t i = 0; i < TEST_COUNT_OF(bad); i++)
            for (uint64_t at = 0; at < COUNT; at += 12007) {
                float kept = x[at];
                int64_t *bins = new_bins();
                x[at] = bad[i];
                *finite = true;
                slc_all_finite(&stream, SLUICE_FP32, COUNT, x, finite);
                slc_norm_add(&stream, SLUICE_FP32, COUNT, x, bins);
                assert_false(*finite);
                assert_int_equal(bins[SLC_NORM_BINS - 1], 1);
                assert_true(isinf(slc_norm_result(bins)));
                x[at] = kept;
                test_release(bins);
            }
        test_release(finite);
        slc_stream_destroy(&stream);
    }
    test_release(x);
}

/* All of the 2^16 bf16 numbers, from any grain on, must give what the fp32 of the same value gives. */
static void bf16_is_its_fp32(void **state)
{
    (void)state;
    enum { ALL = 1 << 16, TAIL = 16 * 37 + 5 };
    uint16_t *x = test_bytes(ALL * sizeof *x);
    float *wide = test_floats(ALL);
    uint64_t seed = 3;
    for (uint32_t i = 0; i < ALL; i++) x[i] = (uint16_t)(i * 40503u); /* an odd factor: each number once, well mixed */
    for (uint32_t i = 0; i < ALL; i++) wide[i] = sluice_bf16_to_float(x[i]);
    for (uint32_t round = 0; round < 40; round++) {
        uint64_t at = 16 * (test_random(&seed) % (ALL / 16 - 64)), count = round % 2 ? TAIL : 16 * (1 + round);
        TEST_EACH_WAY(way)
        {
            sluice_stream stream = test_stream(1 + round % 3);
            int64_t *got = new_bins(), want[SLC_NORM_BINS] = {0};
            bool *finite = test_bytes(1);
            *finite = true;
            slc_norm_add_ref(count, wide + at, want);
            assert_int_equal(slc_norm_add(&stream, SLUICE_BF16, count, x + at, got), SLUICE_OK);
            assert_memory_equal(got, want, sizeof want);
            assert_int_equal(slc_all_finite(&stream, SLUICE_BF16, count, x + at, finite), SLUICE_OK);
            assert_int_equal(*finite, slc_all_finite_ref(count, wide + at));
            for (uint64_t i = at; round == 0 && i < at + 64; i++) { /* one by one */
                *finite = true;
                assert_int_equal(slc_all_finite(&stream, SLUICE_BF16, 1, x + i, finite), SLUICE_OK);
                assert_int_equal(*finite, isfinite(wide[i]) != 0);
            }
            test_release(got), test_release(finite);
            slc_stream_destroy(&stream);
        }
    }
    uint32_t bad = 0;
    sluice_stream stream = test_stream(1);
    for (uint32_t i = 0; i < ALL; i++) {
        bool finite = true;
        slc_all_finite(&stream, SLUICE_BF16, 1, x + i, &finite);
        assert_int_equal(finite, isfinite(wide[i]) != 0);
        bad += !finite;
    }
    assert_int_equal(bad, 256); /* exponents of all ones: 128 numbers of either sign */
    test_release(x), test_release(wide);
    slc_stream_destroy(&stream);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bins_do_not_depend_on_order_or_partition),
        cmocka_unit_test(tail_is_a_padded_grain),
        cmocka_unit_test(result_agrees_with_long_double),
        cmocka_unit_test(result_is_rounded_once),
        cmocka_unit_test(packed_bins_add_up),
        cmocka_unit_test(extremes),
        cmocka_unit_test(non_finite_is_seen),
        cmocka_unit_test(bf16_is_its_fp32),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
