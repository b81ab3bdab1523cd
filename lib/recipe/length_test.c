/* Lengths must be those of a float64 statement of DeepSpeed's formula (38327e07, curriculum_scheduler.py: fixed_root,
 * fixed_discrete) in 10^5 steps, but for its lengths below the shortest; they never fall, and changes are found. */
#include "lib/recipe/length.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>
// clang-format off
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
// clang-format on

enum { STEPS = 100000 };

#define GROWING(l, m, o, r, k)                                                                                         \
    {                                                                                                                  \
        .least = (l), .most = (m), .over = (o), .root = (r), .multiple = (k)                                           \
    }
static const slc_recipe_length growing[] = {
    GROWING(8, 64, 15000, 1, 8),      GROWING(64, 1024, 99999, 1, 8), GROWING(64, 1024, 30000, 2, 8),
    GROWING(64, 1024, 100001, 3, 64), GROWING(128, 512, 1, 1, 128),   GROWING(1, 1, 7, 1, 1),
    GROWING(1, 2048, 77777, 16, 1),   GROWING(10, 1000, 1000, 1, 10), GROWING(32, 128, 2, 2, 32),
    GROWING(7, 7 * 90, 50000, 5, 7),  GROWING(4, 64, 1000, 1, 8),     GROWING(3, 50, 1000, 2, 10),
    GROWING(100, 200, 100000, 1, 1),  GROWING(8, 1024, 400000, 1, 8), GROWING(16, 16, 100000, 4, 16),
};

/* Difficulty that DeepSpeed computes before step `step`, from 0. */
static double deepspeed(const slc_recipe_length *l, uint64_t step)
{
    const double t = (double)(step + 1);
    double next = (double)powl((long double)(t / (double)l->over), 1.0L / l->root);
    next = floor(next * (l->most - l->least) + l->least);
    next -= fmod(next, l->multiple);
    return fmin(next, l->most);
}

static void check_changes(const slc_recipe_length *l, uint64_t step, uint32_t before, uint32_t now)
{
    const uint64_t found = slc_recipe_length_changes(l, step - 1);
    assert_true(now != before ? found == step : found > step);
    if (now != before) assert_true(step <= slc_recipe_length_settles(l));
}

static void grows_as_deepspeeds(void **state)
{
    (void)state;
    uint64_t raised = 0;
    for (size_t i = 0; i < sizeof growing / sizeof *growing; i++) {
        const slc_recipe_length *l = &growing[i];
        uint32_t last = 0;
        for (uint64_t step = 0; step < STEPS; step++) {
            const double wanted = deepspeed(l, step);
            const uint32_t got = slc_recipe_length_at(l, step);
            const bool floored = wanted < l->least && step + 1 < l->over, past = step + 1 >= l->over;
            assert_true(got == (floored ? l->least : past ? l->most : (uint32_t)wanted));
            assert_true(got >= l->least && got <= l->most && got >= last);
            if (step && (got != last || step % 499 == 0)) check_changes(l, step, last, got);
            raised += floored;
            last = got;
        }
        if (l->over <= STEPS) assert_true(slc_recipe_length_changes(l, STEPS) == UINT64_MAX && last == l->most);
    }
    assert_true(raised > 0);
}

static void stretches_are_deepspeeds(void **state)
{
    (void)state;
    slc_recipe_length l = {.least = 64, .most = 512, .stretch_count = 4};
    const struct {
        uint32_t length;
        uint64_t until;
    } stretches[] = {{128, 90000}, {128, 90010}, {64, 90011}, {512, 0}};
    memcpy(l.stretches, stretches, sizeof stretches);
    for (uint64_t step = 0; step < STEPS; step++) {
        const uint64_t t = step + 1;
        const uint32_t wanted = t <= 90010 ? 128 : t <= 90011 ? 64 : 512;
        assert_int_equal(slc_recipe_length_at(&l, step), wanted);
        const uint64_t next = step < 90010 ? 90010 : step < 90011 ? 90011 : UINT64_MAX;
        assert_true(slc_recipe_length_changes(&l, step) == next);
    }
    assert_true(slc_recipe_length_settles(&l) == 90011);
    l.stretch_count = 1;
    assert_true(slc_recipe_length_at(&l, 0) == 128 && slc_recipe_length_changes(&l, 0) == UINT64_MAX);
    assert_true(slc_recipe_length_settles(&l) == 0);
}

static void none_is_none(void **state)
{
    (void)state;
    const slc_recipe_length none = {0};
    assert_true(slc_recipe_length_at(&none, 5) == 0 && slc_recipe_length_changes(&none, 5) == UINT64_MAX);
    assert_true(slc_recipe_length_settles(&none) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(grows_as_deepspeeds),
                                       cmocka_unit_test(stretches_are_deepspeeds), cmocka_unit_test(none_is_none)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
