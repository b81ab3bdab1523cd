/* Micro-batches must grow as the formula says in 10^5 steps; factors must be those of a float64 statement within 1e-12.
 */
#include "lib/recipe/batch.h"

#include <math.h>
// clang-format off
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
// clang-format on

static void grows_as_the_formula_says(void **state)
{
    (void)state;
    static const slc_recipe_batch batches[] = {{1, 8, 1000}, {3, 4, 7}, {1, 64, 99999}, {2, 65536, 70000}, {5, 5, 10},
                                               {1, 10, 4},   {1, 1, 0}, {7, 7, 0},      {1, 4, 0},         {1, 3, 3}};
    for (size_t i = 0; i < sizeof batches / sizeof *batches; i++) {
        const slc_recipe_batch *b = &batches[i];
        uint64_t last = 1;
        for (uint64_t step = 0; step < 100000; step++) {
            const double wanted =
                step < b->over ? (double)b->first + floor((double)step * (double)(b->most - b->first) / (double)b->over)
                               : (double)b->most;
            const uint64_t got = slc_recipe_batch_at(b, step);
            assert_true((double)got == wanted && got >= last && got <= b->most);
            if (step && got != last) assert_true(slc_recipe_batch_changes(b, step - 1) == step);
            if (step && got == last) assert_true(slc_recipe_batch_changes(b, step - 1) > step);
            last = got;
        }
        assert_true(slc_recipe_batch_changes(b, 100000) == UINT64_MAX);
    }
}

static void rules_are_a_ratio_and_its_root(void **state)
{
    (void)state;
    for (uint64_t sequences = 1; sequences < 5000; sequences += 7)
        for (uint64_t base = 1; base < 5000; base += 101) {
            const double ratio = (double)sequences / (double)base;
            assert_true(slc_recipe_rule_factor(SLC_RECIPE_RULE_NONE, sequences, base) == 1);
            assert_true(fabs(slc_recipe_rule_factor(SLC_RECIPE_RULE_LINEAR, sequences, base) - ratio) <= 1e-12 * ratio);
            const double root = slc_recipe_rule_factor(SLC_RECIPE_RULE_SQRT, sequences, base);
            assert_true(fabs(root * root - ratio) <= 1e-12 * ratio);
        }
    assert_true(slc_recipe_rule_factor(SLC_RECIPE_RULE_NONE, 3, 0) == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(grows_as_the_formula_says),
                                       cmocka_unit_test(rules_are_a_ratio_and_its_root)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
