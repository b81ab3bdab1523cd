/* theta, p and factors must be those of a float64 statement of DeepSpeed 38327e07, within 1e-12, over 10^5 steps; each
 * layer must be kept as often as p says within three deviations; draws must depend on seed, step and layer alone. */
#include "lib/recipe/depth.h"

#include <math.h>
// clang-format off
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
// clang-format on

static const slc_recipe_depth depths[] = {
    {0.5, 0.001, 1}, {0.25, 0.0001, 7}, {1, 0.001, 3}, {0.9, 0.01, 11}, {1e-3, 1.0 / 3, 1u << 31}};
enum { DEPTHS = sizeof depths / sizeof *depths, STEPS = 100000 };

static bool is_close(double got, double wanted)
{
    return fabs(got - wanted) <= 1e-12 * fabs(wanted);
}

static void follows_the_formulas(void **state)
{
    (void)state;
    for (int i = 0; i < DEPTHS; i++)
        for (uint64_t step = 0; step < STEPS; step++) {
            const slc_recipe_depth *d = &depths[i];
            const double theta = slc_recipe_depth_theta(d, step);
            assert_true(is_close(theta, (1. - d->least) * exp(-d->gamma * (double)step) + d->least));
            assert_true(theta >= d->least && theta <= 1);
            if (step % 1009) continue;
            double sum = 0;
            for (uint32_t l = 0; l < 12; l++) {
                const double p = slc_recipe_depth_keeps(theta, 12, l), wanted = 1 - l / 12.0 * (1 - theta);
                assert_true(is_close(p, wanted));
                assert_true(is_close(slc_recipe_depth_factor(theta, 12, l, false), 1 / wanted));
                assert_true(
                    is_close(slc_recipe_depth_factor(theta, 12, l, true), 1 / (1 - (l + 1) / 12.0 * (1 - theta))));
                sum += p;
            }
            assert_true(is_close(slc_recipe_depth_mean(theta, 12), sum));
        }
    assert_true(slc_recipe_depth_theta(&depths[0], 0) == 1);
    assert_true(is_close(slc_recipe_depth_mean(0.5, 12), 12 * (1 - 11 / 48.0)));
}

/* The published gain of the reference's factors: at most 1.083 for 12 layers at theta .5. */
static void reference_scales_by_the_layer_above(void **state)
{
    (void)state;
    double most = 0;
    for (uint32_t l = 0; l < 12; l++)
        most = fmax(most, slc_recipe_depth_factor(0.5, 12, l, true) / slc_recipe_depth_factor(0.5, 12, l, false));
    assert_true(is_close(most, 13.0 / 12));
}

static void keeps_as_often_as_it_should(void **state)
{
    (void)state;
    for (uint32_t layer = 0; layer < 12; layer++) {
        const slc_recipe_depth d = {.least = 0.5, .gamma = 1e-3, .seed = 40 + layer};
        double wanted = 0, variance = 0;
        uint64_t kept = 0;
        for (uint64_t step = 0; step < STEPS; step++) {
            const double p = slc_recipe_depth_keeps(slc_recipe_depth_theta(&d, step), 12, layer);
            wanted += p;
            variance += p * (1 - p);
            kept += slc_recipe_depth_draw(&d, step, layer, p);
        }
        assert_true(fabs((double)kept - wanted) <= 3 * sqrt(variance));
        if (layer == 0) assert_true(kept == STEPS);
    }
}

/* Two layers, steps or seeds agree as often as independent draws of probability 1/2 do. */
static void draws_are_independent(void **state)
{
    (void)state;
    const slc_recipe_depth d = {.seed = 5}, other = {.seed = 6};
    uint64_t layers = 0, steps = 0, seeds = 0;
    for (uint64_t step = 0; step < STEPS; step++) {
        const bool kept = slc_recipe_depth_draw(&d, step, 3, 0.5);
        assert_true(kept == slc_recipe_depth_draw(&d, step, 3, 0.5));
        layers += kept == slc_recipe_depth_draw(&d, step, 4, 0.5);
        steps += kept == slc_recipe_depth_draw(&d, step + 1, 3, 0.5);
        seeds += kept == slc_recipe_depth_draw(&other, step, 3, 0.5);
    }
    const double bar = 3.5 * sqrt(STEPS * 0.25), half = STEPS / 2.0;
    assert_true(fabs((double)layers - half) <= bar && fabs((double)steps - half) <= bar);
    assert_true(fabs((double)seeds - half) <= bar);
}

/* Brute force finds the same steps. */
static void depth_changes_by_a_share(void **state)
{
    (void)state;
    for (int i = 0; i < DEPTHS; i++) {
        const slc_recipe_depth *d = &depths[i];
        for (uint64_t from = 0; from < 3000; from += 499) {
            const double mean = slc_recipe_depth_mean(slc_recipe_depth_theta(d, from), 12) - 0.05 * 12;
            uint64_t wanted = from + 1;
            while (wanted < STEPS && slc_recipe_depth_mean(slc_recipe_depth_theta(d, wanted), 12) > mean) wanted++;
            const uint64_t got = slc_recipe_depth_changes(d, 12, from, 0.05);
            assert_true(wanted == STEPS ? got >= STEPS : got == wanted);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(follows_the_formulas), cmocka_unit_test(reference_scales_by_the_layer_above),
        cmocka_unit_test(keeps_as_often_as_it_should), cmocka_unit_test(draws_are_independent),
        cmocka_unit_test(depth_changes_by_a_share)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
