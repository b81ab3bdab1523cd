/* SGD must agree with float64 over several steps, with equal bits for every instruction set, every number of threads
 * and every split of the range; a bf16 gradient, the rounded copy and the words of a step change no bit that they
 * should not. */
#include "tests/support/kernels/arrays.h"
#include "lib/kernels/sgd/sgd.h"

enum { FORMS = 4 };

/* Returns the arguments of one of four forms: without momentum, with it, dampened, and Nesterov's. */
static slc_sgd_args form_of(int form, int step)
{
    slc_sgd_args a = {.learning_rate = 0.03,
                      .momentum = form ? 0.9 : 0,
                      .weight_decay = 0.1,
                      .rest = form == 2 && step > 1 ? 0.75 : 1,
                      .gradient_factor = 0.7,
                      .nesterov = form == 3};
    return a;
}

static void agrees_with_float64(void **state)
{
    (void)state;
    const uint64_t counts[] = {1, 8, 16, 64, 197, 512, 100003};
    for (size_t c = 0; c < TEST_COUNT_OF(counts); c++)
        for (int form = 0; form < FORMS; form++) {
            const uint64_t count = counts[c];
            float *first[2] = {0};
            TEST_EACH_WAY_OF(way, count)
            for (uint32_t threads = 1; threads <= 2; threads++) {
                sluice_stream stream = test_stream(threads);
                float *w = test_uniform_floats(count, -1, 1, 1), *m = test_floats(count);
                memset(m, 0, count * sizeof *m);
                double *w64 = test_widen(count, w), *m64 = test_doubles(count);
                for (int step = 1; step <= 4; step++) {
                    float *g = test_gradients(SLUICE_FP32, count, 10 + (uint64_t)step);
                    double *g64 = test_widen(count, g);
                    slc_sgd_args a = form_of(form, step);
                    a.count = count;
                    a.gradient = g, a.value = w, a.buffer = form ? m : NULL;
                    assert_int_equal(slc_sgd(&stream, &a), SLUICE_OK);
                    a.gradient = g64, a.value = w64, a.buffer = form ? m64 : NULL;
                    slc_sgd_ref(&a);
                    test_release(g), test_release(g64);
                }
                test_close("value", count, w, w64, 1e-6);
                test_close("buffer", count, m, m64, 1e-6);
                test_same_bits("value", count, w, &first[0]);
                test_same_bits("buffer", count, m, &first[1]);
                test_release(w), test_release(m), test_release(w64), test_release(m64);
                slc_stream_destroy(&stream);
            }
            for (int i = 0; i < 2; i++) test_release(first[i]);
        }
}

static void any_split_gives_equal_bits(void **state)
{
    (void)state;
    enum { COUNT = 1111 };
    float *g = test_uniform_floats(COUNT, -1, 1, 5);
    for (int form = 0; form < FORMS; form++) {
        float *first[2] = {0};
        TEST_EACH_WAY(way)
        for (uint64_t piece = 1; piece <= COUNT; piece = piece * 3 + 5) {
            sluice_stream stream = test_stream(1);
            float *w = test_uniform_floats(COUNT, -1, 1, 1), *m = test_uniform_floats(COUNT, -1, 1, 2);
            for (uint64_t at = 0; at < COUNT; at += piece) {
                slc_sgd_args a = form_of(form, 2);
                a.count = COUNT - at < piece ? COUNT - at : piece;
                a.gradient = g + at, a.value = w + at, a.buffer = form ? m + at : NULL;
                assert_int_equal(slc_sgd(&stream, &a), SLUICE_OK);
            }
            test_same_bits("value", COUNT, w, &first[0]);
            test_same_bits("buffer", COUNT, m, &first[1]);
            test_release(w), test_release(m);
            slc_stream_destroy(&stream);
        }
        for (int i = 0; i < 2; i++) test_release(first[i]);
    }
    test_release(g);
}

static void bf16_gradient_and_rounded_values(void **state)
{
    (void)state;
    const uint64_t counts[] = {1, 15, 16, 17, 197, 50001};
    enum { SLACK = 16 };
    for (size_t c = 0; c < TEST_COUNT_OF(counts); c++) {
        const uint64_t count = counts[c];
        uint16_t *narrow = test_bytes(count * sizeof *narrow), *rounded = test_bytes((count + SLACK) * sizeof *rounded);
        float *drawn = test_uniform_floats(count, -1, 1, 5), *wide = test_floats(count);
        for (uint64_t i = 0; i < count; i++) narrow[i] = sluice_bf16_from_float(drawn[i]);
        for (uint64_t i = 0; i < count; i++) wide[i] = sluice_bf16_to_float(narrow[i]);
        for (int form = 0; form < FORMS; form++) {
            float *first[2] = {0};
            TEST_EACH_WAY_OF(way, count)
            for (int variant = 0; variant < 4; variant++) {
                sluice_stream stream = test_stream(1 + (uint32_t)variant % 3);
                float *w = test_uniform_floats(count, -1, 1, 1), *m = test_uniform_floats(count, -1, 1, 2);
                const bool bf16 = variant & 1, rounds = variant & 2;
                memset(rounded, 0x55, (count + SLACK) * sizeof *rounded);
                slc_sgd_args a = form_of(form, 2);
                a.count = count;
                a.gradient_dtype = bf16 ? SLUICE_BF16 : SLUICE_FP32;
                a.gradient = bf16 ? (void *)narrow : wide, a.value = w, a.buffer = form ? m : NULL;
                a.rounded = rounds ? rounded : NULL;
                assert_int_equal(slc_sgd(&stream, &a), SLUICE_OK);
                test_same_bits("value", count, w, &first[0]);
                test_same_bits("buffer", count, m, &first[1]);
                for (uint64_t i = 0; i < count + SLACK; i++)
                    assert_int_equal(rounded[i], rounds && i < count ? sluice_bf16_from_float(w[i]) : 0x5555);
                test_release(w), test_release(m);
                slc_stream_destroy(&stream);
            }
            for (int i = 0; i < 2; i++) test_release(first[i]);
        }
        test_release(narrow), test_release(rounded), test_release(drawn), test_release(wide);
    }
}

/* A factor in the words must count as one in the arguments, and a skipped step must change nothing. */
static void words_are_heeded(void **state)
{
    (void)state;
    enum { COUNT = 5003 };
    const double factors[] = {1, 1.0 / 3, 1e-9, 0x1.fffffefp-1}; /* the last two are rounded to fp32 */
    for (size_t c = 0; c < TEST_COUNT_OF(factors); c++) {
        float *first[2] = {0};
        TEST_EACH_WAY(way)
        for (int variant = 0; variant < 3; variant++) { /* in the arguments, told, skipped */
            sluice_stream stream = test_stream(1);
            float *g = test_uniform_floats(COUNT, -1, 1, 4), *w = test_uniform_floats(COUNT, -1, 1, 1),
                  *m = test_uniform_floats(COUNT, -1, 1, 2);
            float *before[] = {test_copy(COUNT, w), test_copy(COUNT, m)}, *now[] = {w, m};
            sluice_step_words *words = test_bytes(sizeof *words);
            *words = (sluice_step_words){factors[c], variant == 2};
            slc_sgd_args a = form_of(3, 2);
            a.count = COUNT;
            a.gradient = g, a.value = w, a.buffer = m;
            if (variant)
                a.words = words;
            else
                a.gradient_factor = factors[c];
            assert_int_equal(slc_sgd(&stream, &a), SLUICE_OK);
            for (int i = 0; i < 2; i++)
                if (variant == 2)
                    assert_memory_equal(now[i], before[i], COUNT * sizeof(float));
                else
                    test_same_bits("value or buffer", COUNT, now[i], &first[i]);
            for (int i = 0; i < 2; i++) test_release(now[i]), test_release(before[i]);
            test_release(g), test_release(words);
            slc_stream_destroy(&stream);
        }
        for (int i = 0; i < 2; i++) test_release(first[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_float64),
        cmocka_unit_test(any_split_gives_equal_bits),
        cmocka_unit_test(bf16_gradient_and_rounded_values),
        cmocka_unit_test(words_are_heeded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
