/* Tokens are drawn as often as softmax says, among the largest logits alone if top_k says so; ties go to the first
 * token; the same token number draws the same token; what is no number is refused. */
#include "bench/eval/sampling.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "sluice/status.h"

enum { TOKENS = 7, DRAWS = 40000 };

static void draw(const slc_sampling *s, const float *logits, uint32_t count, uint32_t *times)
{
    memset(times, 0, count * sizeof *times);
    for (uint64_t i = 0; i < DRAWS; i++) {
        int32_t token = -1, again = -2;
        assert_int_equal(slc_sample_token(s, logits, count, i, &token), SLUICE_OK);
        if (i % 100 == 0) assert_int_equal(slc_sample_token(s, logits, count, i, &again), SLUICE_OK);
        if (i % 100 == 0) assert_int_equal(token, again);
        assert_in_range(token, 0, count - 1);
        times[token]++;
    }
}

/* allowed: a bit for each token that can win. */
static void check_frequencies(const slc_sampling *s, const float *logits, unsigned allowed)
{
    uint32_t times[TOKENS];
    double weight[TOKENS], total = 0;
    draw(s, logits, TOKENS, times);
    for (int i = 0; i < TOKENS; i++) {
        weight[i] = allowed >> i & 1 ? exp((double)logits[i] / s->temperature) : 0;
        total += weight[i];
    }
    for (int i = 0; i < TOKENS; i++) {
        const double share = weight[i] / total, deviation = sqrt(DRAWS * share * (1 - share));
        if (fabs(times[i] - DRAWS * share) > 5 * deviation)
            fail_msg("token %d: %u of %d draws, %g expected", i, times[i], DRAWS, DRAWS * share);
    }
}

static void as_often_as_softmax_says(void **state)
{
    (void)state;
    const float logits[TOKENS] = {1, -2, 0.5f, 3, 3, -90, 2};
    check_frequencies(&(slc_sampling){.temperature = 1, .seed = 1}, logits, 0x7f);
    check_frequencies(&(slc_sampling){.temperature = 0.5, .seed = 2}, logits, 0x7f);
    check_frequencies(&(slc_sampling){.temperature = 30, .seed = 3, .top_k = TOKENS}, logits, 0x7f);
    check_frequencies(&(slc_sampling){.temperature = 2, .seed = 4, .top_k = 3}, logits, 1u << 3 | 1u << 4 | 1u << 6);
    check_frequencies(&(slc_sampling){.temperature = 2, .seed = 5, .top_k = 1}, logits,
                      1u << 3); /* of two, the first */
    const float equal[TOKENS] = {4, 4, 4, 4, 4, 4, 4};
    check_frequencies(&(slc_sampling){.temperature = 1, .seed = 6, .top_k = 4}, equal, 0xf);
}

static void greedy_takes_the_first_of_the_largest(void **state)
{
    (void)state;
    const float logits[TOKENS] = {1, -2, 0.5f, 3, 3, -90, 2};
    int32_t token;
    for (uint64_t number = 0; number < 10; number++) {
        assert_int_equal(slc_sample_token(&(slc_sampling){.seed = number}, logits, TOKENS, number, &token), SLUICE_OK);
        assert_int_equal(token, 3);
    }
}

/* The threshold is found by selection, whose borders are where mistakes live. */
static void the_largest_are_found_in_any_order(void **state)
{
    (void)state;
    float logits[100];
    for (uint32_t count = 1; count <= 100; count += 3)
        for (uint32_t k = 1; k <= count; k++) {
            for (uint32_t i = 0; i < count; i++) logits[i] = (float)((i * 37 + k) % 11);
            for (uint64_t number = 0; number < 5; number++) {
                int32_t token;
                uint32_t before = 0;
                assert_int_equal(
                    slc_sample_token(&(slc_sampling){.temperature = 1e6, .top_k = k}, logits, count, number, &token),
                    SLUICE_OK);
                for (uint32_t i = 0; i < count; i++)
                    before += logits[i] > logits[token] || (logits[i] == logits[token] && i < (uint32_t)token);
                assert_true(before < k);
            }
        }
}

static void what_is_no_number_is_refused(void **state)
{
    (void)state;
    float logits[TOKENS] = {0};
    int32_t token;
    logits[5] = NAN;
    assert_int_equal(slc_sample_token(&(slc_sampling){0}, logits, TOKENS, 0, &token), SLUICE_ERR_NON_FINITE);
    assert_non_null(strstr(sluice_last_error(), "token 5"));
    logits[5] = INFINITY;
    assert_int_equal(slc_sample_token(&(slc_sampling){.temperature = 1}, logits, TOKENS, 0, &token),
                     SLUICE_ERR_NON_FINITE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_often_as_softmax_says),
        cmocka_unit_test(greedy_takes_the_first_of_the_largest),
        cmocka_unit_test(the_largest_are_found_in_any_order),
        cmocka_unit_test(what_is_no_number_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
