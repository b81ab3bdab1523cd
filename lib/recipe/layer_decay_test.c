/* The factors must be those of BEiT's assigner, whose statement in Python is
 * [decay ** (layers + 1 - i) for i in range(layers + 2)], within 1e-12 of it. */
#include "lib/recipe/layer_decay.h"

#include <math.h>
// clang-format off
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
// clang-format on

static void as_published(void **state)
{
    (void)state;
    static const double decays[] = {0.65, 0.75, 0.9, 0.001, 1};
    static const uint32_t depths[] = {1, 12, 24, 48};
    double rates[64];
    for (size_t d = 0; d < sizeof decays / sizeof *decays; d++)
        for (size_t l = 0; l < sizeof depths / sizeof *depths; l++) {
            const uint32_t groups = slc_recipe_layer_groups(depths[l]);
            assert_int_equal(groups, depths[l] + 2);
            slc_recipe_layer_rates(decays[d], depths[l], rates);
            for (uint32_t g = 0; g < groups; g++) {
                const double wanted = pow(decays[d], (double)(depths[l] + 1 - g));
                assert_true(fabs(rates[g] - wanted) <= 1e-12 * wanted);
            }
            assert_true(rates[groups - 1] == 1);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_published)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
