/* Sums of tokens must be those of the steps one by one, sizes must stay between changes, and folding keeps tokens as
 * whole sequences have them but for what is left over. */
#include "lib/recipe/step_size.h"

// clang-format off
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
// clang-format on

static const slc_recipe_length lengths[] = {
    {.most = 0},
    {.least = 8, .most = 64, .over = 150, .root = 1, .multiple = 8},
    {.least = 16, .most = 60, .over = 299, .root = 2, .multiple = 4},
    {.least = 16, .most = 64, .stretch_count = 3, .stretches = {{16, 40}, {32, 41}, {64, 0}}},
};
static const slc_recipe_batch batches[] = {{3, 3, 0}, {1, 8, 100}, {2, 3, 1000}};

static void check_steps(const slc_recipe_sizes *s)
{
    uint64_t sum = 0;
    slc_recipe_step last = {0};
    for (uint64_t step = 0; step < 400; step++) {
        const slc_recipe_step now = slc_recipe_step_at(s, step);
        const uint32_t length = now.length ? now.length : s->whole;
        assert_true(now.tokens == now.micro_batches * now.pieces * length);
        if (s->folds) assert_true(now.pieces * length <= s->whole && (now.pieces + 1) * length > s->whole);
        if (!s->folds) assert_true(now.pieces == 1);
        const bool same = step && last.micro_batches == now.micro_batches && last.length == now.length;
        if (step) assert_true(same == (slc_recipe_size_changes(s, step - 1) != step));
        assert_true(slc_recipe_tokens(s, 0, step) == sum);
        if (step > 37) assert_true(slc_recipe_tokens(s, 37, step) == sum - slc_recipe_tokens(s, 0, 37));
        sum += now.tokens;
        last = now;
    }
    assert_true(slc_recipe_size_changes(s, 1000) == UINT64_MAX);
}

static void sums_are_those_of_the_steps(void **state)
{
    (void)state;
    for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++)
        for (size_t b = 0; b < sizeof batches / sizeof *batches; b++)
            for (int folds = 0; folds < 2; folds++) check_steps(&(slc_recipe_sizes){batches[b], lengths[l], folds, 64});
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(sums_are_those_of_the_steps)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
