/* Choices that grow keep to the limit and to what was asked for, get no slower, and mostly get faster. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "lib/plan/strategy_table.h"
#include "sched/layout/make_plan.h"
#include "sched/joint/growth.h"
#include "sched/joint/simple_plans.h"
#include "sched/simulate/simulate.h"
#include "sched/study/random_profile.h"
#include "tests/support/scale.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    slc_profile *profile;
    slc_free_choices c; /* what is asked for; behind it, what is chosen */
    slc_strategy *strategies;
    slc_joint_request request;
} grower;

/* Draws a profile of which every third fixes a unit and a layer, and begins with what needs little memory. */
static void grower_init(grower *g, uint64_t seed)
{
    slc_random_options options = slc_random_defaults();
    options.layers = (slc_random_range){4, 10};
    options.can_recompute = true;
    assert_int_equal(slc_random_profile(&options, seed, &g->profile), SLUICE_OK);
    const slc_job *job = &g->profile->job;
    assert_int_equal(slc_free_choices_init(&g->c, job, true), SLUICE_OK);
    if (seed % 3 == 0) {
        g->c.strategies[0] = slc_unit_strategy(job, &job->units[0], SLC_SDP);
        g->c.recompute[1] = 0;
    }
    g->strategies = g->c.strategies + job->unit_count;
    g->request = (slc_joint_request){.job = job,
                                     .times = &g->profile->times,
                                     .strategies = g->c.strategies,
                                     .recompute = g->c.recompute,
                                     .limit = UINT64_MAX};
    for (uint32_t u = 0; u < job->unit_count; u++)
        g->strategies[u] = slc_unit_is_free(&job->units[u], g->c.strategies[u]) ? SLC_FSDP : g->c.strategies[u];
    for (uint32_t l = 0; l < job->layer_count; l++) g->c.recomputed[l] = g->c.recompute[l];
}

static void grower_fini(grower *g)
{
    slc_free_choices_fini(&g->c);
    slc_profile_destroy(g->profile);
}

/* Returns the step of the choices' plan, and the size of its arena. */
static double step_of(const grower *g, uint64_t *arena_bytes)
{
    const slc_scheduling in = slc_joint_scheduling(&g->request, g->strategies, g->c.recomputed);
    slc_plan *plan;
    slc_forecast forecast;
    assert_int_equal(slc_plan_make(&in, &slc_scheduler_one_ahead, &plan), SLUICE_OK);
    assert_int_equal(slc_simulate(in.job, in.times, plan, NULL, &forecast), SLUICE_OK);
    *arena_bytes = plan->arena_bytes;
    slc_plan_destroy(plan);
    return forecast.step_s;
}

static bool find(grower *g, double until_s)
{
    bool fits;
    assert_int_equal(
        slc_growth_find(&g->request, &slc_scheduler_one_ahead, SLC_SDP, until_s, g->strategies, g->c.recomputed, &fits),
        SLUICE_OK);
    return fits;
}

static void choices_get_faster_within_the_limit(void **state)
{
    (void)state;
    const uint32_t rounds = test_rounds(30);
    uint32_t faster = 0;
    for (uint64_t seed = 1; seed <= rounds; seed++) {
        grower g;
        uint64_t bytes, least, all_sdp;
        grower_init(&g, seed);
        double before_s = step_of(&g, &least);
        assert_int_equal(slc_simple_plan_range(g.profile, true, &bytes, &all_sdp), SLUICE_OK);
        g.request.limit = least + (all_sdp > least ? all_sdp - least : 0) / 4 * (seed % 4);
        assert_true(find(&g, INFINITY));
        double after_s = step_of(&g, &bytes);
        assert_true(bytes <= g.request.limit);
        assert_true(after_s <= before_s * (1 + 1e-9));
        faster += after_s < before_s * 0.999;
        if (seed % 3 == 0) {
            assert_int_equal(g.strategies[0], g.c.strategies[0]);
            assert_false(g.c.recomputed[1]);
        }
        grower_fini(&g);
    }
    assert_true(faster > rounds / 2);
}

/* Without effort, and if not even the first choices fit, all stays as it was. */
static void choices_stay_without_effort_or_room(void **state)
{
    (void)state;
    for (int tight = 0; tight < 2; tight++) {
        grower g;
        slc_work work = {0};
        uint64_t bytes;
        grower_init(&g, 1);
        double before_s = step_of(&g, &bytes);
        g.request.work = &work;
        if (tight) g.request.limit = bytes - 1;
        assert_int_equal(find(&g, tight ? INFINITY : 0), !tight);
        assert_true(step_of(&g, &bytes) == before_s);
        for (uint32_t u = 0; u < g.profile->job.unit_count; u++) assert_int_equal(g.strategies[u], SLC_FSDP);
        grower_fini(&g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(choices_get_faster_within_the_limit),
        cmocka_unit_test(choices_stay_without_effort_or_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
