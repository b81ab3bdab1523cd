/* The trade-off's points must fill their shares, keep to the limit and never beat the plans that the joint planner
 * tries anyway; the shape of a curve must be the one that a person sees. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "lib/base/numbers/random.h"
#include "lib/base/status.h"
#include "lib/plan/strategy_table.h"
#include "sched/study/random_profile.h"
#include "sched/layout/make_plan.h"
#include "sched/study/tradeoff.h"
#include "tests/support/seed.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SEEDS = 12, SHARES = 11 };

static void shape_is(slc_curve_shape shape, uint32_t valleys, uint32_t count, const double *step_s)
{
    uint32_t found;
    slc_curve_shape got = slc_curve_shape_of(step_s, count, 0.02, &found);
    if (got != shape || found != valleys)
        fail_msg("%s with %u valleys, not %s with %u", slc_curve_shape_name(got), found, slc_curve_shape_name(shape),
                 valleys);
    double *mirrored = malloc(((size_t)count + 1) * sizeof *mirrored);
    for (uint32_t i = 0; i < count; i++) mirrored[i] = step_s[count - 1 - i];
    slc_curve_shape other = shape == SLC_SHAPE_FALLING  ? SLC_SHAPE_RISING
                            : shape == SLC_SHAPE_RISING ? SLC_SHAPE_FALLING
                                                        : shape;
    assert_int_equal(slc_curve_shape_of(mirrored, count, 0.02, &found), other);
    assert_int_equal(found, valleys);
    free(mirrored);
}

#define SHAPE_IS(shape, valleys, ...)                                                                                  \
    shape_is(shape, valleys, sizeof((double[]){__VA_ARGS__}) / sizeof(double), (double[]){__VA_ARGS__})

static void shapes_are_named(void **state)
{
    (void)state;
    shape_is(SLC_SHAPE_UNKNOWN, 0, 0, NULL);
    SHAPE_IS(SLC_SHAPE_UNKNOWN, 1, 2, 1);
    SHAPE_IS(SLC_SHAPE_FLAT, 1, 1, 1, 1);
    SHAPE_IS(SLC_SHAPE_FLAT, 1, 1.0, 1.019, 1.0, 1.01);
    SHAPE_IS(SLC_SHAPE_FALLING, 1, 3, 2, 1);
    SHAPE_IS(SLC_SHAPE_FALLING, 1, 3, 2, 2.01, 1.99, 1);             /* a bump within the tolerance */
    SHAPE_IS(SLC_SHAPE_FALLING, 1, 1.05, 1.04, 1.03, 1.02, 1.01, 1); /* no single step is long */
    SHAPE_IS(SLC_SHAPE_FALLING, 1, 2, 1, 1, 1.01);
    SHAPE_IS(SLC_SHAPE_U, 1, 3, 1, 2);
    SHAPE_IS(SLC_SHAPE_U, 1, 1.5, 1.2, 1, 1.01, 1, 1.1, 1.3);
    SHAPE_IS(SLC_SHAPE_DOUBLE_VALLEY, 2, 1, 2, 1); /* a ridge: both ends are valleys */
    SHAPE_IS(SLC_SHAPE_DOUBLE_VALLEY, 2, 3, 1, 2, 1, 3);
    SHAPE_IS(SLC_SHAPE_DOUBLE_VALLEY, 2, 3, 1, 2, 1);
    SHAPE_IS(SLC_SHAPE_DOUBLE_VALLEY, 3, 3, 1, 2, 1, 2, 1.5, 3);
}

/* A curve of straight lines between drawn turns must have its shape for any number of points on a line, and with noise
 * up to half the tolerance. */
static void noise_changes_no_shape(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        double step_s[64], at = 1;
        uint32_t count = 0, swings = (uint32_t)slc_random_below(test_seed(seed), 2, 0, 5), valleys;
        bool down = slc_random_below(test_seed(seed), 2, 1, 2);
        int first = down ? -1 : 1;
        step_s[count++] = at;
        for (uint32_t s = 0; s < swings; s++, down = !down) {
            uint32_t points = 1 + (uint32_t)slc_random_below(test_seed(seed), 3, s, 8);
            double way = down ? -0.2 : 0.2;
            for (uint32_t p = 0; p < points; p++) step_s[count++] = at += way / points;
        }
        while (count < 3) step_s[count++] = at;
        for (uint32_t i = 0; i < count; i++)
            step_s[i] *= 1 + 0.002 * ((double)slc_random_below(test_seed(seed), 4, i, 1001) / 1000 - 0.5);
        slc_curve_shape expected = !swings                    ? SLC_SHAPE_FLAT
                                   : swings == 1              ? (first < 0 ? SLC_SHAPE_FALLING : SLC_SHAPE_RISING)
                                   : swings == 2 && first < 0 ? SLC_SHAPE_U
                                                              : SLC_SHAPE_DOUBLE_VALLEY;
        assert_int_equal(slc_curve_shape_of(step_s, count, 0.02, &valleys), expected);
        assert_int_equal(valleys > 1, expected == SLC_SHAPE_DOUBLE_VALLEY);
    }
}

static slc_profile *draw(uint64_t seed)
{
    slc_random_options options = slc_random_defaults();
    slc_profile *profile;
    options.layers = (slc_random_range){4, 10};
    options.unit_blocks = 4;
    if (slc_random_profile(&options, test_seed(seed), &profile)) fail_msg("%s", sluice_last_error());
    return profile;
}

/* The arena of one strategy for all units under one_ahead. */
static uint64_t arena_of(const slc_profile *profile, slc_strategy strategy)
{
    slc_strategy *strategies = malloc((profile->job.unit_count + 1) * sizeof *strategies);
    uint64_t bytes;
    for (uint32_t u = 0; u < profile->job.unit_count; u++) strategies[u] = strategy;
    slc_scheduling in = {.job = &profile->job, .strategies = strategies, .times = &profile->times, .limit = UINT64_MAX};
    assert_int_equal(slc_plan_measure(&in, &slc_scheduler_one_ahead, UINT64_MAX, &bytes), 0);
    free(strategies);
    return bytes;
}

static void check_point(const slc_job *job, const slc_tradeoff *t, uint32_t index, uint64_t all_fsdp)
{
    const slc_tradeoff_point *p = &t->points[index];
    assert_true(fabs(p->asked - (double)index / (t->count - 1)) < 1e-12);
    assert_true(p->share <= p->asked + 1e-9);
    assert_int_equal(p->strategy_bytes, slc_resident_bytes_of_all(job, p->strategies) - all_fsdp);
    bool room = false; /* for one more unit: then the share is not filled */
    for (uint32_t u = 0; u < job->unit_count; u++) {
        assert_true(p->strategies[u] == SLC_SDP || p->strategies[u] == SLC_FSDP);
        uint64_t more =
            slc_resident_bytes(job, &job->units[u], SLC_SDP) - slc_resident_bytes(job, &job->units[u], SLC_FSDP);
        room |=
            p->strategies[u] == SLC_FSDP && (double)(p->strategy_bytes + more) + 1 <= p->asked * (double)t->free_bytes;
    }
    assert_false(room);
    if (p->same_as != SLC_NONE) {
        assert_true(p->same_as < index && t->points[p->same_as].same_as == SLC_NONE);
        assert_memory_equal(p->strategies, t->points[p->same_as].strategies, job->unit_count * sizeof *p->strategies);
    }
    if (!p->fits) return;
    assert_true(p->forecast.step_s > 0 && *p->member);
    assert_true(p->forecast.peak_bytes <= t->floor_bytes + t->free_bytes);
}

static void points_are_what_they_say(void **state)
{
    (void)state;
    uint32_t fit = 0, full = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        slc_profile *profile = draw(seed);
        const slc_job *job = &profile->job;
        uint64_t low = arena_of(profile, SLC_FSDP), high = arena_of(profile, SLC_SDP);
        slc_tradeoff_request ask = {.job = job,
                                    .times = &profile->times,
                                    .limit = low + (high > low ? (high - low) * (seed % 4) / 3 : 0),
                                    .count = SHARES,
                                    .quick = true};
        slc_tradeoff t;
        assert_int_equal(slc_tradeoff_make(&ask, &t), 0);
        assert_int_equal(t.count, SHARES);
        assert_int_equal(t.floor_bytes + t.free_bytes, ask.limit);
        uint64_t all_fsdp = slc_resident_bytes_of_all(job, t.points[0].strategies); /* share 0 */
        assert_int_equal(t.points[0].strategy_bytes, 0);
        assert_true(t.points[0].fits); /* because one_ahead fits */
        for (uint32_t i = 0; i < t.count; i++) {
            check_point(job, &t, i, all_fsdp);
            fit += t.points[i].fits;
            full += !t.points[i].fits;
        }
        assert_true(t.joint.fits && t.joint_plan && t.joint_plan->arena_bytes <= ask.limit);
        /* Quick plans are baselines, and the joint search holds those of the uniform choices. */
        assert_true(t.joint.forecast.step_s <= t.points[0].forecast.step_s * (1 + 1e-12));
        slc_tradeoff_fini(&t);
        slc_profile_destroy(profile);
    }
    assert_true(fit > SEEDS && full > 0); /* the seeds are fixed: both kinds occur */
}

/* With the solver and the search, every point of the curve must be what it says. */
static void solved_points_are_what_they_say(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 2; seed++) {
        slc_profile *profile = draw(100 + seed);
        uint64_t low = arena_of(profile, SLC_FSDP), high = arena_of(profile, SLC_SDP);
        slc_tradeoff_request ask = {
            .job = &profile->job, .times = &profile->times, .limit = (low + high) / 2, .count = 4, .effort_s = 0.1};
        slc_tradeoff t;
        assert_int_equal(slc_tradeoff_make(&ask, &t), 0);
        for (uint32_t i = 0; i < t.count; i++)
            check_point(&profile->job, &t, i, slc_resident_bytes_of_all(&profile->job, t.points[0].strategies));
        assert_int_equal(t.joint.strategy_bytes, slc_resident_bytes_of_all(&profile->job, t.joint.strategies) -
                                                     slc_resident_bytes_of_all(&profile->job, t.points[0].strategies));
        assert_int_equal(slc_plan_validate(&profile->job, t.joint_plan), 0);
        slc_tradeoff_fini(&t);
        slc_profile_destroy(profile);
    }
}

static void too_small_a_budget_is_refused(void **state)
{
    (void)state;
    slc_profile *profile = draw(7);
    slc_tradeoff t;
    slc_tradeoff_request ask = {
        .job = &profile->job, .times = &profile->times, .limit = 1 << 20, .count = 3, .quick = true};
    assert_int_equal(slc_tradeoff_make(&ask, &t), SLUICE_ERR_BUDGET);
    slc_tradeoff_fini(&t);
    ask.count = 1;
    assert_int_equal(slc_tradeoff_make(&ask, &t), SLUICE_ERR_ARGUMENT);
    slc_tradeoff_fini(&t);
    slc_profile_destroy(profile);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes_are_named),
        cmocka_unit_test(noise_changes_no_shape),
        cmocka_unit_test(points_are_what_they_say),
        cmocka_unit_test(solved_points_are_what_they_say),
        cmocka_unit_test(too_small_a_budget_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
