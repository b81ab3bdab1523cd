/* Plans for steps that draw their layers: on other draws they are hardly ever slower than the plan for all layers,
 * equal input gives the equal plan, and probabilities of 1 change nothing. `sluice-lab study drawn` has more profiles
 * and the planner's own effort. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "lib/base/status.h"
#include "sched/joint/simple_plans.h"
#include "sched/study/drawn_plans.h"
#include "sched/study/random_profile.h"
#include "tests/support/scale.h"

#include <math.h>
#include <stdlib.h>

enum { PROFILES = 4, OTHER_DRAWS = 1000, OTHER_SEED = 77 };
static const double EFFORT_S = 0.03, LITTLE = 0.005;

typedef struct {
    slc_profile *profile;
    slc_free_choices choices;
    slc_joint_request request;
} drawn_job;

static void drawn_job_init(drawn_job *d, uint64_t seed, double theta)
{
    slc_random_options options = slc_random_defaults();
    options.layers = (slc_random_range){5, 9};
    options.unit_blocks = 4;
    assert_int_equal(slc_random_profile(&options, seed, &d->profile), SLUICE_OK);
    assert_int_equal(slc_drawn_plans_set_keeps(d->profile, theta), SLUICE_OK);
    assert_int_equal(slc_free_choices_init(&d->choices, &d->profile->job, false), SLUICE_OK);
    d->request = (slc_joint_request){.job = &d->profile->job,
                                     .times = &d->profile->times,
                                     .strategies = d->choices.strategies,
                                     .recompute = d->choices.recompute,
                                     .limit = UINT64_MAX,
                                     .effort_s = EFFORT_S};
}

static void drawn_job_fini(drawn_job *d)
{
    slc_free_choices_fini(&d->choices);
    slc_profile_destroy(d->profile);
}

static void plans_for_draws_are_not_slower(void **state)
{
    (void)state;
    const uint32_t profiles = test_brief() ? 1 : test_rounds(PROFILES);
    for (uint64_t seed = 1; seed <= profiles; seed++) {
        drawn_job d;
        slc_drawn_plans found;
        drawn_job_init(&d, seed, 0.5);
        if (slc_drawn_plans_compare(&d.request, OTHER_DRAWS, OTHER_SEED, &found)) fail_msg("%s", sluice_last_error());
        if (!(found.drawn_s <= found.all_s * (1 + LITTLE)))
            fail_msg("profile %llu: the plan for draws takes %g s, that for all layers %g s", (unsigned long long)seed,
                     found.drawn_s, found.all_s);
        assert_true(found.all_s < found.whole_s);
        assert_true(fabs(found.said_s / found.drawn_s - 1) < 0.02);
        drawn_job_fini(&d);
    }
}

static uint64_t fingerprint_of(const slc_joint_request *request)
{
    slc_joint_answer answer = {0};
    if (slc_joint_plan(request, &answer, NULL)) fail_msg("%s", sluice_last_error());
    const uint64_t fingerprint = slc_plan_fingerprint(answer.plan);
    assert_int_equal(slc_plan_validate(request->job, answer.plan), SLUICE_OK);
    assert_true(!request->times->keeps || answer.bound_s == 0);
    slc_plan_destroy(answer.plan);
    return fingerprint;
}

static void equal_input_gives_the_equal_plan(void **state)
{
    (void)state;
    drawn_job d;
    drawn_job_init(&d, 5, 0.4);
    assert_int_equal(fingerprint_of(&d.request), fingerprint_of(&d.request));
    drawn_job_fini(&d);
}

static void probabilities_of_one_change_nothing(void **state)
{
    (void)state;
    drawn_job d;
    drawn_job_init(&d, 6, 1);
    assert_null(d.profile->times.keeps);
    assert_true(slc_times_depth(&d.profile->job, &d.profile->times) == d.profile->job.layer_count);
    drawn_job_fini(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans_for_draws_are_not_slower),
        cmocka_unit_test(equal_input_gives_the_equal_plan),
        cmocka_unit_test(probabilities_of_one_change_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
