/* AdamW against float64 over several steps, and equal bits for every instruction set and every split of the range. */
#include "lib/kernels/adamw/adamw.h"
#include "lib/kernels/adamw/adamw_ref.h"
#include "lib/kernels/kernel_test.h"

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
        TEST_EACH_ISA(isa)
        for (uint32_t threads = 1; threads <= 2; threads++) {
            slc_stream stream = test_stream(threads);
            float *w = test_uniform_floats(count, -1, 1, 1), *m = test_floats(count), *v = test_floats(count);
            memset(m, 0, count * sizeof *m);
            memset(v, 0, count * sizeof *v);
            double *w64 = test_widen(count, w), *m64 = test_doubles(count), *v64 = test_doubles(count);
            for (int step = 1; step <= 4; step++) {
                float *g = test_uniform_floats(count, -0.1f, 0.1f, 10 + (uint64_t)step);
                double *g64 = test_widen(count, g);
                slc_adamw_settings settings = settings_at(step);
                assert_int_equal(slc_adamw(&stream, &settings, count, g, w, m, v), SLUICE_OK);
                slc_adamw_ref(&settings, count, g64, w64, m64, v64);
                free(g), free(g64);
            }
            test_close("value", count, w, w64, 1e-6);
            test_close("exp_avg", count, m, m64, 1e-6);
            test_close("exp_avg_sq", count, v, v64, 1e-6);
            test_same_bits("value", count, w, &first[0]);
            test_same_bits("exp_avg", count, m, &first[1]);
            test_same_bits("exp_avg_sq", count, v, &first[2]);
            free(w), free(m), free(v), free(w64), free(m64), free(v64);
            slc_stream_destroy(&stream);
        }
        for (int i = 0; i < 3; i++) free(first[i]);
    }
}

static void any_split_gives_equal_bits(void **state)
{
    (void)state;
    enum { COUNT = 1111 };
    slc_adamw_settings settings = settings_at(3);
    slc_stream stream = test_stream(1);
    float *g = test_uniform_floats(COUNT, -1, 1, 5), *first[3] = {0};
    TEST_EACH_ISA(isa)
    for (uint64_t piece = 1; piece <= COUNT; piece = piece * 3 + 5) {
        float *w = test_uniform_floats(COUNT, -1, 1, 1), *m = test_uniform_floats(COUNT, -1, 1, 2),
              *v = test_uniform_floats(COUNT, 0, 1, 3);
        for (uint64_t at = 0; at < COUNT; at += piece) {
            uint64_t n = COUNT - at < piece ? COUNT - at : piece;
            assert_int_equal(slc_adamw(&stream, &settings, n, g + at, w + at, m + at, v + at), SLUICE_OK);
        }
        test_same_bits("value", COUNT, w, &first[0]);
        test_same_bits("exp_avg", COUNT, m, &first[1]);
        test_same_bits("exp_avg_sq", COUNT, v, &first[2]);
        free(w), free(m), free(v);
    }
    for (int i = 0; i < 3; i++) free(first[i]);
    free(g);
    slc_stream_destroy(&stream);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_float64),
        cmocka_unit_test(any_split_gives_equal_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
