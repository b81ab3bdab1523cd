/* Times that are quadratics of the extent are found again, whatever their coefficients; fewer extents give what can be
 * said; noise and times that were not measured do no harm. */
#include "lib/plan/measured/fit_extents.h"

#include "lib/base/numbers/random.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

static double quadratic(const double of[3], double s)
{
    return of[0] + of[1] * s + of[2] * s * s;
}

static void near(double got, double wanted, double share)
{
    if (!(fabs(got - wanted) <= share * wanted)) fail_msg("%.12g, not %.12g", got, wanted);
}

static double drawn(uint32_t *number)
{
    return (double)slc_random_below(41, 7, (*number)++, 1000001) / 1e6;
}

/* Three lengths are enough for a quadratic, also for its value beyond them. */
static void quadratics_are_found(void **state)
{
    (void)state;
    uint32_t number = 0;
    for (int i = 0; i < 1000; i++) {
        double of[3], x[5], y[5];
        const size_t count = 3 + (size_t)(i % 3);
        for (int k = 0; k < 3; k++) of[k] = i >> k & 1 ? pow(10, -6 * drawn(&number)) : 0;
        if (of[0] + of[1] + of[2] <= 0) continue;
        for (size_t k = 0; k < count; k++) {
            x[k] = (double)(k + 1) / 8;
            y[k] = quadratic(of, x[k]);
        }
        near(slc_fit_extent(x, y, count, 0.25), quadratic(of, 0.25), 1e-6);
        near(slc_fit_extent(x, y, count, 1), quadratic(of, 1), 1e-5);
    }
}

static void fewer_extents_give_simpler_curves(void **state)
{
    (void)state;
    const double x[] = {0.25, 0.5}, line[] = {3, 4}, bent[] = {1, 3}, both[] = {0.5, 0.5}, twice[] = {2, 2.2};
    near(slc_fit_extent(x, line, 1, 1), 12, 1e-12);     /* one: in proportion */
    near(slc_fit_extent(x, line, 2, 1), 6, 1e-9);       /* 2 + 4 s */
    near(slc_fit_extent(x, bent, 2, 1), 10, 1e-9);      /* a line would begin below 0: 2 s + 8 s^2 */
    near(slc_fit_extent(both, twice, 2, 1), 4.2, 0.01); /* one extent, measured twice */
}

static void coefficients_stay_above_zero(void **state)
{
    (void)state;
    const double x[] = {0.125, 0.25, 0.5}, falling[] = {4, 3, 2}, flat[] = {2, 2, 2};
    near(slc_fit_extent(x, flat, 3, 1), 2, 1e-9);
    assert_true(slc_fit_extent(x, falling, 3, 1) >= 2 && slc_fit_extent(x, falling, 3, 1) <= 4);
    uint32_t number = 0;
    for (int i = 0; i < 1000; i++) {
        double y[3];
        for (int k = 0; k < 3; k++) y[k] = 0.1 + drawn(&number);
        double before = 0;
        for (int k = 1; k <= 8; k++) {
            const double value = slc_fit_extent(x, y, 3, k / 8.0);
            assert_true(value >= before && isfinite(value));
            before = value;
        }
    }
}

/* Noise of 2 % moves a value between the lengths by a few percent. */
static void noise_is_smoothed(void **state)
{
    (void)state;
    uint32_t number = 0;
    const double of[3] = {1e-4, 2e-3, 1e-3}, x[] = {0.125, 0.25, 0.5, 1};
    for (int i = 0; i < 200; i++) {
        double y[4];
        for (int k = 0; k < 4; k++) y[k] = quadratic(of, x[k]) * (1 + 0.04 * (drawn(&number) - 0.5));
        near(slc_fit_extent(x, y, 4, 0.75), quadratic(of, 0.75), 0.05);
    }
}

static void missing_times_are_left_out(void **state)
{
    (void)state;
    const double x[] = {0.25, 0.5, 1}, y[] = {1, 0, 4}, none[] = {0, 0, 0};
    near(slc_fit_extent(x, y, 3, 0.5), 2, 1e-9);
    assert_true(slc_fit_extent(x, none, 3, 0.5) == 0);
    assert_true(slc_fit_extent(x, y, 0, 0.5) == 0);
}

/* Each slot of a job has a curve of its own. */
static void slots_are_fitted_one_by_one(void **state)
{
    (void)state;
    enum { LAYERS = 3, SAMPLES = 3 };
    const slc_job job = {.layer_count = LAYERS};
    double slots[SAMPLES + 1][2 * LAYERS], again[SAMPLES + 1][LAYERS];
    slc_times times[SAMPLES + 1];
    slc_extent_sample samples[SAMPLES];
    const double extents[SAMPLES + 1] = {0.125, 0.25, 0.5, 1};
    for (int i = 0; i <= SAMPLES; i++) {
        const double s = extents[i];
        for (int k = 0; k < 2 * LAYERS; k++) slots[i][k] = 1 + k * s + 2 * k * s * s;
        for (int l = 0; l < LAYERS; l++) again[i][l] = l * s;
        times[i] = (slc_times){.slot_s = slots[i], .recompute_s = again[i]};
        if (i < SAMPLES) samples[i] = (slc_extent_sample){s, &times[i]};
    }
    double wanted[2 * LAYERS], kept[LAYERS];
    for (int k = 0; k < 2 * LAYERS; k++) wanted[k] = slots[SAMPLES][k], slots[SAMPLES][k] = 77;
    for (int l = 0; l < LAYERS; l++) kept[l] = again[SAMPLES][l], again[SAMPLES][l] = 77;
    slc_fit_extents(&job, samples, SAMPLES, 1, 1, &times[SAMPLES]);
    for (int k = 0; k < 2 * LAYERS; k++) near(slots[SAMPLES][k], wanted[k], 1e-6);
    assert_true(again[SAMPLES][0] == 77); /* no sample has it */
    for (int l = 1; l < LAYERS; l++) near(again[SAMPLES][l], kept[l], 1e-6);
    slc_fit_extents(&job, samples, SAMPLES, 0.5, 2, &times[SAMPLES]);
    for (int k = 0; k < 2 * LAYERS; k++) near(slots[SAMPLES][k], 1 + 2 * (0.5 * k + 0.5 * k), 1e-6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quadratics_are_found),         cmocka_unit_test(fewer_extents_give_simpler_curves),
        cmocka_unit_test(coefficients_stay_above_zero), cmocka_unit_test(noise_is_smoothed),
        cmocka_unit_test(missing_times_are_left_out),   cmocka_unit_test(slots_are_fitted_one_by_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
