/* Time outside of slots, and ranks that come late, change no plan: they lengthen the step that it predicts, and are a
 * part of the distance to the bound. */
#include "sched/planner.h"
#include "sched/joint/simple_plans.h"
#include "sched/study/random_profile.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char *plan_text(const slc_profile *profile, const slc_plan_request *request, slc_plan_forecast *forecast)
{
    slc_plan_answer answer;
    char *text;
    assert_int_equal(slc_plan_for_budget(&profile->job, request, &answer), SLUICE_OK);
    assert_int_equal(slc_plan_to_json(&profile->job, answer.plan, NULL, &text), SLUICE_OK);
    *forecast = answer.forecast;
    slc_plan_destroy(answer.plan);
    return text;
}

static void check_schedule(slc_profile *profile, const char *schedule, uint64_t budget_bytes, double step_s)
{
    const slc_plan_request request = {.strategy = "auto",
                                      .schedule = schedule,
                                      .times = &profile->times,
                                      .budget_bytes = budget_bytes,
                                      .effort_s = 0.1};
    slc_plan_forecast alone, whole;
    profile->times.outside_s = profile->times.late_s = 0;
    char *first = plan_text(profile, &request, &alone);
    profile->times.outside_s = 0.2 * step_s;
    profile->times.late_s = 0.01 * step_s;
    char *second = plan_text(profile, &request, &whole);
    assert_string_equal(first, second);
    assert_true(alone.outside_s == 0 && whole.outside_s > 0);
    assert_true(whole.step_s > alone.step_s && whole.bound_s == alone.bound_s);
    assert_true(fabs(whole.step_s - whole.compute_s - whole.exposed_s - whole.outside_s) <= 1e-9 * whole.step_s);
    assert_true(whole.distance.known == alone.distance.known);
    if (whole.distance.known) {
        const double parts_s = whole.step_s - fmax(alone.step_s, alone.bound_s);
        assert_true(alone.distance.part_s[SLC_DISTANCE_OUTSIDE] == 0);
        assert_true(fabs(whole.distance.part_s[SLC_DISTANCE_OUTSIDE] - parts_s) <= 1e-9 * whole.step_s);
    }
    free(first);
    free(second);
}

static void the_plan_is_the_same(void **state)
{
    (void)state;
    slc_random_options options = slc_random_defaults();
    slc_profile *profile;
    uint64_t least, all_sdp;
    double step_s = 0;
    options.layers = (slc_random_range){6, 8};
    options.world = 4;
    assert_int_equal(slc_random_profile(&options, 3, &profile), SLUICE_OK);
    assert_int_equal(slc_simple_plan_range(profile, false, &least, &all_sdp), SLUICE_OK);
    for (uint32_t s = 0; s < slc_job_slots(&profile->job); s++) step_s += profile->times.slot_s[s];
    const uint64_t budget_bytes = profile->job.reserved_bytes + (least + all_sdp) / 2;
    check_schedule(profile, "greedy", 0, step_s);
    check_schedule(profile, slc_schedule_default, budget_bytes, step_s);
    slc_profile_destroy(profile);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_plan_is_the_same)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
