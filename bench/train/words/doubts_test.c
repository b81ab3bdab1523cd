/* A loss that jumps is told once, and noise is not. */
#include "bench/train/words/doubts.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Losses fall from `first` with noise of a tenth, and step `jump` has `to`. Returns how often it was told, and when
 * last. */
static int watch_losses(double first, uint64_t jump, double to, uint64_t *when)
{
    slc_training_loss_watch watch = {0};
    double sum = 0, weight = 0;
    int told = 0;
    for (uint64_t i = 1; i <= 60; i++) {
        const double noise = 0.1 * first * ((double)(i * 7 % 11) / 10 - 0.5);
        slc_training_step step = {.step = i, .loss = i == jump ? to : first / (1 + 0.02 * (double)i) + noise};
        if (isfinite(step.loss)) {
            sum = 0.95 * sum + step.loss;
            weight = 0.95 * weight + 1;
        }
        step.smoothed_loss = sum / weight;
        if (!slc_training_loss_jumps(&watch, &step)) continue;
        told++;
        *when = i;
    }
    return told;
}

static void jumps(void **state)
{
    (void)state;
    uint64_t when = 0;
    assert_int_equal(watch_losses(5, 0, 0, &when), 0);
    assert_int_equal(watch_losses(0.1, 0, 0, &when), 0);
    assert_int_equal(watch_losses(5, 30, 12, &when), 1);
    assert_int_equal(when, 30);
    assert_int_equal(watch_losses(5, 40, INFINITY, &when), 1);
    assert_int_equal(when, 40);
    assert_int_equal(watch_losses(5, 41, NAN, &when), 1);
    assert_int_equal(watch_losses(5, 3, 12, &when), 0);     /* first steps may do anything */
    assert_int_equal(watch_losses(0.1, 30, 0.5, &when), 0); /* small losses are noisy */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(jumps)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
