/* AdamW must agree with float64 over several steps, with equal bits for every instruction set and every split of the
 * range. */
#include "lib/kernels/adamw/adamw.h"
#include "tests/support/kernels/arrays.h"

static slc_adamw_settings settings_at(int step)
{
    slc_adamw_settings s = {.learning_rate = 3e-3,
                            .beta1 = 0.9,
                            .beta2 = 0.95,
                            .epsilon = 1e-8,
                            .weight_decay = 0.1,
                            .gradient_factor = 0.7};
    s.bias_correction1 = 1 - pow(s.beta1, step);
    s.bias_correction2 = 1 - pow(s.beta2, step);
    return s;
}

static void agrees_with_float64(void **state)
{
    (void)state;
    const uint64_t counts[] = {1, 8, 16, 64, 197, 512, 100003};
    for (size_t c = 0; c < TEST_COUNT_OF(counts); c++) {
        uint64_t count = counts[c];
        float *first[3] = {0};
        TEST_EACH_WAY_OF(way, count)
        for (uint32_t threads = 1; threads <= 2; threads++) {
            sluice_stream stream = test_stream(threads);
            float *w = test_uniform_floats(count, -1, 1, 1), *m = test_floats(count), *v = test_floats(count);
            memset(m, 0, count * sizeof *m);
            memset(v, 0, count * sizeof *v);
            double *w64 = test_widen(count, w), *m64 = test_doubles(count), *v64 = test_doubles(count);
            for (int step = 1; step <= 4; step++) {
                float *g = test_gradients(SLUICE_FP32, count, 10 + (uint64_t)step);
                double *g64 = test_widen(count, g);
                slc_adamw_settings settings = settings_at(step);
                const slc_adamw_range range = {
                    .count = count, .gradient = g, .value = w, .exp_avg = m, .exp_avg_sq = v};
                assert_int_equal(slc_adamw_many(&stream, &settings, 1, &range), SLUICE_OK);
                slc_adamw_ref(&settings, count, g64, w64, m64, v64);
                test_release(g), test_release(g64);
            }
            test_close("value", count, w, w64, 1e-6);
            test_close("exp_avg", count, m, m64, 1e-6);
            test_close("exp_avg_sq", count, v, v64, 1e-6);
            test_same_bits("value", count, w, &first[0]);
            test_same_bits("exp_avg", count, m, &first[1]);
            test_same_bits("exp_avg_sq", count, v, &first[2]);
            test_release(w), test_release(m), test_release(v), test_release(w64), test_release(m64), test_release(v64);
            slc_stream_destroy(&stream);
        }
        for (int i = 0; i < 3; i++) test_release(first[i]);
    }
}

static void any_split_gives_equal_bits(void **state)
{
    (void)state;
    enum { COUNT = 1111 };
    slc_adamw_settings settings = settings_at(3);
    float *g = test_uniform_floats(COUNT, -1, 1, 5), *first[3] = {0};
    TEST_EACH_WAY(way)
    for (uint64_t piece = 1; piece <= COUNT; piece = piece * 3 + 5) {
        sluice_stream stream = test_stream(1);
        float *w = test_uniform_floats(COUNT, -1, 1, 1), *m = test_uniform_floats(COUNT, -1, 1, 2),
              *v = test_uniform_floats(COUNT, 0, 1, 3);
        for (uint64_t at = 0; at < COUNT; at += piece) {
            uint64_t n = COUNT - at < piece ? COUNT - at : piece;
            const slc_adamw_range range = {
                .count = n, .gradient = g + at, .value = w + at, .exp_avg = m + at, .exp_avg_sq = v + at};
            assert_int_equal(slc_adamw_many(&stream, &settings, 1, &range), SLUICE_OK);
        }
        test_same_bits("value", COUNT, w, &first[0]);
        test_same_bits("exp_avg", COUNT, m, &first[1]);
        test_same_bits("exp_avg_sq", COUNT, v, &first[2]);
        test_release(w), test_release(m), test_release(v);
        slc_stream_destroy(&stream);
    }
    for (int i = 0; i < 3; i++) test_release(first[i]);
    test_release(g);
}

/* A bf16 gradient must count as its fp32 value; the rounded copy must be of the new value; neither may change a bit of
 * value and moments. */
static void bf16_gradient_and_rounded_values(void **state)
{
    (void)state;
    const uint64_t counts[] = {1, 15, 16, 17, 197, 50001};
    enum { SLACK = 16 };
    slc_adamw_settings settings = settings_at(2);
    for (size_t c = 0; c < TEST_COUNT_OF(counts); c++) {
        uint64_t count = counts[c];
        uint16_t *narrow = test_bytes(count * sizeof *narrow), *rounded = test_bytes((count + SLACK) * sizeof *rounded);
        float *drawn = test_uniform_floats(count, -1, 1, 5), *wide = test_floats(count);
        for (uint64_t i = 0; i < count; i++) narrow[i] = sluice_bf16_from_float(drawn[i]);
        for (uint64_t i = 0; i < count; i++) wide[i] = sluice_bf16_to_float(narrow[i]);
        TEST_EACH_WAY_OF(way, count)
        {
            float *first[3] = {0};
            for (int variant = 0; variant < 4; variant++) {
                sluice_stream stream = test_stream(1 + (uint32_t)variant % 3);
                float *w = test_uniform_floats(count, -1, 1, 1), *m = test_uniform_floats(count, -1, 1, 2),
                      *v = test_uniform_floats(count, 0, 1, 3);
                bool bf16 = variant & 1, rounds = variant & 2;
                memset(rounded, 0x55, (count + SLACK) * sizeof *rounded);
                const slc_adamw_range range = {.count = count,
                                               .gradient_dtype = bf16 ? SLUICE_BF16 : SLUICE_FP32,
                                               .gradient = bf16 ? (void *)narrow : wide,
                                               .value = w,
                                               .exp_avg = m,
                                               .exp_avg_sq = v,
                                               .rounded = rounds ? rounded : NULL};
                assert_int_equal(slc_adamw_many(&stream, &settings, 1, &range), SLUICE_OK);
                test_same_bits("value", count, w, &first[0]);
                test_same_bits("exp_avg", count, m, &first[1]);
                test_same_bits("exp_avg_sq", count, v, &first[2]);
                for (uint64_t i = 0; i < count + SLACK; i++)
                    assert_int_equal(rounded[i], rounds && i < count ? sluice_bf16_from_float(w[i]) : 0x5555);
                test_release(w), test_release(m), test_release(v);
                slc_stream_destroy(&stream);
            }
            for (int i = 0; i < 3; i++) test_release(first[i]);
        }
        test_release(narrow), test_release(rounded), test_release(drawn), test_release(wide);
    }
}

/* Many ranges in one call, some empty, some without decay, must give the bits of one call for each. */
static void many_ranges_are_as_one_each(void **state)
{
    (void)state;
    const uint64_t counts[] = {1, 50000, 0, 16, 7, 300, 33333, 15, 0};
    enum { RANGES = 9, COUNT = 83672 };
    slc_adamw_settings settings = settings_at(3), no_decay = settings;
    no_decay.weight_decay = 0;
    float *g = test_uniform_floats(COUNT, -1, 1, 5), *first[3] = {0};
    TEST_EACH_WAY(way)
    for (uint32_t threads = 0; threads <= 4; threads++) { /* 0: one call for each range */
        sluice_stream stream = test_stream(threads ? threads : 1);
        float *w = test_uniform_floats(COUNT, -1, 1, 1), *m = test_uniform_floats(COUNT, -1, 1, 2),
              *v = test_uniform_floats(COUNT, 0, 1, 3);
        slc_adamw_range ranges[RANGES];
        uint64_t at = 0;
        for (int i = 0; i < RANGES; at += counts[i++]) {
            ranges[i] = (slc_adamw_range){.count = counts[i],
                                          .gradient = g + at,
                                          .value = w + at,
                                          .exp_avg = m + at,
                                          .exp_avg_sq = v + at,
                                          .no_decay = i % 3 == 1};
            slc_adamw_range alone = ranges[i];
            alone.no_decay = false;
            if (!threads)
                assert_int_equal(slc_adamw_many(&stream, ranges[i].no_decay ? &no_decay : &settings, 1, &alone),
                                 SLUICE_OK);
        }
        assert_int_equal(at, COUNT);
        if (threads) assert_int_equal(slc_adamw_many(&stream, &settings, RANGES, ranges), SLUICE_OK);
        test_same_bits("value", COUNT, w, &first[0]);
        test_same_bits("exp_avg", COUNT, m, &first[1]);
        test_same_bits("exp_avg_sq", COUNT, v, &first[2]);
        test_release(w), test_release(m), test_release(v);
        slc_stream_destroy(&stream);
    }
    for (int i = 0; i < 3; i++) test_release(first[i]);
    test_release(g);
}

/* A factor in the words must count as one in the settings, and a skipped step must change nothing. */
static void words_are_heeded(void **state)
{
    (void)state;
    enum { COUNT = 5003 };
    const double factors[] = {1, 1.0 / 3, 1e-9, 0x1.fffffefp-1}; /* the last two are rounded to fp32 */
    for (size_t c = 0; c < TEST_COUNT_OF(factors); c++) {
        float *first[3] = {0};
        TEST_EACH_WAY(way)
        for (uint32_t variant = 0; variant < 3; variant++) { /* in the settings, told, skipped */
            sluice_stream stream = test_stream(1);
            float *g = test_uniform_floats(COUNT, -1, 1, 4), *w = test_uniform_floats(COUNT, -1, 1, 1),
                  *m = test_uniform_floats(COUNT, -1, 1, 2), *v = test_uniform_floats(COUNT, 0, 1, 3);
            float *before[] = {test_copy(COUNT, w), test_copy(COUNT, m), test_copy(COUNT, v)}, *now[] = {w, m, v};
            sluice_step_words *words = test_bytes(sizeof *words);
            slc_adamw_settings settings = settings_at(2);
            *words = (sluice_step_words){factors[c], variant == 2};
            if (variant)
                settings.words = words;
            else
                settings.gradient_factor = factors[c];
            const slc_adamw_range range = {.count = COUNT, .gradient = g, .value = w, .exp_avg = m, .exp_avg_sq = v};
            assert_int_equal(slc_adamw_many(&stream, &settings, 1, &range), SLUICE_OK);
            for (int i = 0; i < 3; i++)
                if (variant == 2)
                    assert_memory_equal(now[i], before[i], COUNT * sizeof(float));
                else
                    test_same_bits("value or moment", COUNT, now[i], &first[i]);
            for (int i = 0; i < 3; i++) test_release(now[i]), test_release(before[i]);
            test_release(g), test_release(words);
            slc_stream_destroy(&stream);
        }
        for (int i = 0; i < 3; i++) test_release(first[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_float64),
        cmocka_unit_test(any_split_gives_equal_bits),
        cmocka_unit_test(bf16_gradient_and_rounded_values),
        cmocka_unit_test(many_ranges_are_as_one_each),
        cmocka_unit_test(words_are_heeded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
