/* The generator must give the published answers. Masks must be those of the plain loop for every instruction set,
 * split, number of threads and type. As many elements must be kept as the probability says, independently of each
 * other. */
#include "lib/kernels/dropout/dropout.h"
#include "lib/kernels/residual/residual.h"
#include "tests/support/kernels/arrays.h"

/* Random123's kat_vectors, philox4x32 with 10 rounds. */
static void known_answers(void **state)
{
    (void)state;
    static const struct {
        uint32_t counter[4], key[2], answer[4];
    } vectors[] = {
        {{0}, {0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t v = 0; v < TEST_COUNT_OF(vectors); v++) {
        uint32_t words[4];
        slc_philox_ref(vectors[v].counter, vectors[v].key, words);
        assert_memory_equal(words, vectors[v].answer, sizeof words);
    }
}

static void check_masks(sluice_dtype dtype, slc_dropout rule, uint64_t count, uint32_t threads)
{
    sluice_stream stream = test_stream(threads);
    void *x = test_uniform_typed(dtype, count, 1, 2, 3), *y = test_floats(count);
    float *wide = test_floats_of(dtype, count, x);
    assert_int_equal(slc_dropout_apply(&stream, &rule, dtype, count, x, y), SLUICE_OK);
    for (uint64_t i = 0; i < count; i++) wide[i] *= (float)slc_dropout_factor_ref(&rule, i);
    void *want = test_typed(dtype, count, wide);
    assert_memory_equal(y, want, count * sluice_dtype_bytes(dtype));
    assert_int_equal(slc_dropout_apply(&stream, &rule, dtype, count, x, x), SLUICE_OK);
    assert_memory_equal(x, want, count * sluice_dtype_bytes(dtype));
    test_release(x), test_release(y), test_release(wide), test_release(want);
    slc_stream_destroy(&stream);
}

static void masks_are_the_references(void **state)
{
    (void)state;
    const uint64_t counts[] = {1, 16, 63, 197, 8, 64, 1024, 20001};
    const uint64_t firsts[] = {0, 1, 16, 63, 64, 1000003, (UINT64_C(1) << 34) - 100, (UINT64_C(1) << 60) + 7};
    const float probabilities[] = {1e-9f, 0.1f, 0.5f, 65535.0f / 65536};
    for (size_t c = 0; c < TEST_SHAPES(counts, 4); c++)
        for (size_t f = 0; f < TEST_COUNT_OF(firsts); f++)
            for (size_t p = 0; p < TEST_COUNT_OF(probabilities); p++) TEST_EACH_DTYPE(dtype) TEST_EACH_WAY(way)
                {
                    const slc_dropout rule = {probabilities[p], 0x123456789abcdef0u + f, firsts[f]};
                    check_masks(dtype, rule, counts[c], 1 + (uint32_t)(c + f) % 3);
                }
}

/* One call must give the same as calls that begin anywhere. */
static void splits_do_not_matter(void **state)
{
    (void)state;
    const uint64_t count = 5000;
    sluice_stream stream = test_stream(2);
    float *x = test_uniform_floats(count, 1, 2, 1), *whole = test_floats(count), *parts = test_floats(count);
    slc_dropout rule = {0.3f, 42, 77};
    assert_int_equal(slc_dropout_apply(&stream, &rule, SLUICE_FP32, count, x, whole), SLUICE_OK);
    uint64_t seed = 9;
    for (uint64_t at = 0, some; at < count; at += some) {
        some = test_random(&seed) % 300 + 1;
        if (some > count - at) some = count - at;
        const slc_dropout piece = {rule.probability, rule.seed, rule.first + at};
        assert_int_equal(slc_dropout_apply(&stream, &piece, SLUICE_FP32, some, x + at, parts + at), SLUICE_OK);
    }
    assert_memory_equal(whole, parts, count * sizeof *whole);
    test_release(x), test_release(whole), test_release(parts);
    slc_stream_destroy(&stream);
}

/* Two counts must be within five standard deviations of what the probability says: the elements that are kept, and the
 * pairs of elements, at several distances and under two seeds, of which both are kept. */
static void keeps_its_share(void **state)
{
    (void)state;
    const uint64_t count = test_brief() ? 1 << 16 : 1 << 20; /* also so many that threads share them */
    const float probabilities[] = {0.1f, 0.5f, 0.9f};
    const uint64_t distances[] = {1, 4, 16, 32, 64, 768, 1024};
    sluice_stream stream = test_stream(2);
    float *x = test_floats(count), *y = test_floats(count), *z = test_floats(count);
    for (uint64_t i = 0; i < count; i++) x[i] = 1;
    for (size_t p = 0; p < TEST_COUNT_OF(probabilities); p++) {
        slc_dropout rule = {probabilities[p], 7, 0};
        double keep = 1 - (double)rule.probability, n = (double)count;
        slc_dropout_apply(&stream, &rule, SLUICE_FP32, count, x, y);
        rule.seed++;
        slc_dropout_apply(&stream, &rule, SLUICE_FP32, count, x, z);
        uint64_t kept = 0, both_seeds = 0;
        for (uint64_t i = 0; i < count; i++) kept += y[i] > 0, both_seeds += y[i] > 0 && z[i] > 0;
        assert_true(fabs((double)kept - n * keep) < 5 * sqrt(n * keep * (1 - keep)));
        const double pair = keep * keep, spread = 5 * sqrt(n * pair * (1 - pair) * 3); /* pairs share elements */
        assert_true(fabs((double)both_seeds - n * pair) < spread);
        for (size_t d = 0; d < TEST_COUNT_OF(distances); d++) {
            uint64_t both = 0;
            for (uint64_t i = 0; i < count; i++) both += y[i] > 0 && y[(i + distances[d]) % count] > 0;
            assert_true(fabs((double)both - n * pair) < spread);
        }
    }
    test_release(x), test_release(y), test_release(z);
    slc_stream_destroy(&stream);
}

static void zero_is_the_identity_and_one_is_refused(void **state)
{
    (void)state;
    sluice_stream stream = test_stream(1);
    float x[3] = {1, NAN, -3}, y[3] = {0};
    assert_int_equal(slc_dropout_apply(&stream, &(slc_dropout){0, 1, 2}, SLUICE_FP32, 3, x, y), SLUICE_OK);
    assert_memory_equal(x, y, sizeof x);
    const float wrong[] = {1, 0.99999f, -0.1f, 2, NAN};
    for (size_t i = 0; i < TEST_COUNT_OF(wrong); i++) {
        const slc_dropout rule = {wrong[i], 1, 2};
        assert_int_equal(slc_dropout_apply(&stream, &rule, SLUICE_FP32, 3, x, y), SLUICE_ERR_ARGUMENT);
    }
    slc_stream_destroy(&stream);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_answers),
        cmocka_unit_test(masks_are_the_references),
        cmocka_unit_test(splits_do_not_matter),
        cmocka_unit_test(keeps_its_share),
        cmocka_unit_test(zero_is_the_identity_and_one_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
