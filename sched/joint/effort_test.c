/* Planning counts its work and not the time: equal input gives equal plans, whatever the clock says and however busy
 * the machine is. It ends when the steps that are left cannot win back more of it. */
#include "lib/base/clock.h"
#include "sched/layout/make_plan.h"
#include "sched/planner.h"
#include "sched/joint/least_memory.h"
#include "sched/joint/simple_plans.h"
#include "sched/study/random_profile.h"
#include "tests/support/scale.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* The clock of this program jumps ahead by a tick at each look. */
static uint64_t clock_ns, tick_ns;

uint64_t __wrap_slc_clock_ns(void);
uint64_t __wrap_slc_clock_ns(void)
{
    return clock_ns += tick_ns;
}

static slc_profile *draw_profile(uint64_t seed, uint32_t world)
{
    slc_random_options options = slc_random_defaults();
    slc_profile *profile;
    options.layers = (slc_random_range){6, 10};
    options.world = world;
    assert_int_equal(slc_random_profile(&options, seed, &profile), SLUICE_OK);
    return profile;
}

static slc_plan_request request_for(const slc_profile *profile, double share)
{
    uint64_t least, all_sdp;
    assert_int_equal(slc_simple_plan_range(profile, false, &least, &all_sdp), SLUICE_OK);
    return (slc_plan_request){.strategy = "auto",
                              .schedule = slc_schedule_default,
                              .times = &profile->times,
                              .budget_bytes =
                                  profile->job.reserved_bytes + least + (uint64_t)(share * (double)(all_sdp - least))};
}

/* Plans, and gives the plan's file as text, which the caller frees. */
static char *plan_text(const slc_profile *profile, const slc_plan_request *request, slc_plan_forecast *forecast)
{
    slc_plan_answer answer;
    char *text;
    assert_int_equal(slc_plan_for_budget(&profile->job, request, &answer), SLUICE_OK);
    assert_int_equal(slc_plan_to_json(&profile->job, answer.plan, &answer.forecast, &text), SLUICE_OK);
    *forecast = answer.forecast;
    slc_plan_destroy(answer.plan);
    return text;
}

static void no_clock_changes_a_plan(void **state)
{
    (void)state;
    static const uint64_t ticks_ns[] = {0, 1000, 3600000000000};
    for (uint64_t seed = 1; seed <= (test_brief() ? 1 : 3); seed++) {
        slc_profile *profile = draw_profile(seed, 4);
        slc_plan_request request = request_for(profile, 0.2 * (double)seed);
        slc_plan_forecast forecast;
        char *first = NULL;
        request.effort_s = 0.1;
        for (size_t i = 0; i < sizeof ticks_ns / sizeof *ticks_ns; i++) {
            tick_ns = ticks_ns[i];
            char *text = plan_text(profile, &request, &forecast);
            if (first) assert_string_equal(text, first);
            free(first);
            first = text;
        }
        free(first);
        slc_profile_destroy(profile);
    }
}

/* A ceiling by the clock cuts, still gives a plan, and says that it did. */
static void a_time_limit_cuts(void **state)
{
    (void)state;
    slc_profile *profile = draw_profile(4, 4);
    slc_plan_request request = request_for(profile, 0.5);
    slc_plan_forecast forecast;
    request.time_limit_s = 1;
    tick_ns = 400000000;
    free(plan_text(profile, &request, &forecast));
    assert_int_equal(forecast.ended, SLC_PLANNING_TIME_LIMIT);
    tick_ns = 0;
    request.effort_s = 0.05;
    free(plan_text(profile, &request, &forecast));
    assert_int_not_equal(forecast.ended, SLC_PLANNING_TIME_LIMIT);
    slc_profile_destroy(profile);
}

/* With fewer steps left planning spends no more, and the plan is no better; with very few it ends at once. */
static void few_steps_are_planned_little(void **state)
{
    (void)state;
    static const uint64_t steps[] = {1, 30, 1000000000};
    tick_ns = 0;
    for (uint64_t seed = 5; seed <= (test_brief() ? 5 : 7); seed++) {
        slc_profile *profile = draw_profile(seed, 4);
        slc_plan_request request = request_for(profile, 0.3);
        slc_plan_forecast forecast[3];
        request.effort_s = 0.3;
        for (uint32_t l = 0; l < slc_job_slots(&profile->job); l++) profile->times.slot_s[l] *= 1e-3;
        profile->times.link.reduce_scatter.bytes_per_s *= 1e3;
        profile->times.link.all_gather.bytes_per_s *= 1e3;
        for (int i = 0; i < 3; i++) {
            request.steps_left = steps[i];
            free(plan_text(profile, &request, &forecast[i]));
        }
        assert_int_equal(forecast[0].ended, SLC_PLANNING_PAYS_NO_MORE);
        assert_true(forecast[0].effort_s < forecast[2].effort_s / 3);
        for (int i = 1; i < 3; i++) {
            assert_true(forecast[i].effort_s >= forecast[i - 1].effort_s);
            assert_true(forecast[i].step_s <= forecast[i - 1].step_s * (1 + 1e-9));
        }
        slc_profile_destroy(profile);
    }
}

static void one_rank_has_nothing_to_choose(void **state)
{
    (void)state;
    tick_ns = 0;
    slc_profile *profile = draw_profile(8, 1);
    slc_plan_request request = request_for(profile, 2);
    slc_plan_forecast forecast;
    free(plan_text(profile, &request, &forecast));
    assert_int_equal(forecast.ended, SLC_PLANNING_TRIVIAL);
    assert_true(forecast.effort_s < 0.1);
    slc_profile_destroy(profile);
}

/* An effort beyond the default finds a plan that is no worse. */
static void more_effort_is_no_worse(void **state)
{
    (void)state;
    tick_ns = 0;
    slc_profile *profile = draw_profile(9, 4);
    slc_plan_request request = request_for(profile, 0.2);
    slc_plan_forecast little, more;
    request.effort_s = 0.05;
    free(plan_text(profile, &request, &little));
    request.effort_s = 0.4;
    free(plan_text(profile, &request, &more));
    assert_true(more.step_s <= little.step_s * (1 + 1e-9));
    assert_true(more.effort_s > little.effort_s);
    slc_profile_destroy(profile);
}

/* Returns the work that joint planning does within an effort, for many layers all of which may recompute. */
static double spent_on(uint32_t layers, double effort_s, uint64_t limit, sluice_status expected, double *one_s)
{
    slc_random_options options = slc_random_defaults();
    slc_profile *profile;
    slc_free_choices c;
    options.layers = (slc_random_range){layers, layers};
    options.world = 4;
    assert_int_equal(slc_random_profile(&options, 3, &profile), SLUICE_OK);
    assert_int_equal(slc_free_choices_init(&c, &profile->job, true), SLUICE_OK);
    slc_work work = {0}, one = {0};
    slc_joint_request request = {.job = &profile->job,
                                 .times = &profile->times,
                                 .strategies = c.strategies,
                                 .recompute = c.recompute,
                                 .limit = limit,
                                 .effort_s = effort_s,
                                 .work = &work};
    slc_joint_answer answer;
    assert_int_equal(slc_joint_plan(&request, &answer, NULL), expected);
    if (!expected) slc_plan_destroy(answer.plan);

    slc_plan *plan;
    for (uint32_t u = 0; u < profile->job.unit_count; u++)
        c.strategies[u] = slc_unit_strategy(&profile->job, &profile->job.units[u], SLC_FSDP);
    slc_scheduling in = slc_joint_scheduling(&request, c.strategies, NULL);
    in.work = &one;
    assert_int_equal(slc_plan_make(&in, &slc_scheduler_one_ahead, &plan), SLUICE_OK);
    slc_plan_destroy(plan);
    *one_s = one.spent_s;
    slc_free_choices_fini(&c);
    slc_profile_destroy(profile);
    return work.spent_s;
}

/* Baselines end with the effort too; a plan or two that are under way are made. */
static void baselines_keep_to_the_effort(void **state)
{
    (void)state;
    double one_s, spent_s = spent_on(100, 0.02, UINT64_MAX, SLUICE_OK, &one_s);
    if (spent_s > 0.02 + 4 * one_s) fail_msg("spent %g s, one plan %g s", spent_s, one_s);
}

/* Returns the work of ordering many layers, all fsdp; nothing is packed. */
static double ordering_s(uint32_t layers)
{
    slc_random_options options = slc_random_defaults();
    slc_profile *profile;
    slc_free_choices c;
    slc_work work = {0};
    uint64_t bytes;
    options.layers = (slc_random_range){layers, layers};
    options.world = 4;
    assert_int_equal(slc_random_profile(&options, 3, &profile), SLUICE_OK);
    assert_int_equal(slc_free_choices_init(&c, &profile->job, false), SLUICE_OK);
    for (uint32_t u = 0; u < profile->job.unit_count; u++)
        c.strategies[u] = slc_unit_strategy(&profile->job, &profile->job.units[u], SLC_FSDP);
    const slc_scheduling in = {.job = &profile->job, .strategies = c.strategies, .work = &work};
    assert_int_equal(slc_plan_measure(&in, &slc_scheduler_one_ahead, 0, &bytes), SLUICE_OK);
    slc_free_choices_fini(&c);
    slc_profile_destroy(profile);
    return work.spent_s;
}

/* A scheduler looks at all units for each slot; in deep jobs that counts. */
static void orders_of_deep_jobs_count(void **state)
{
    (void)state;
    const double few_s = ordering_s(100), many_s = ordering_s(400);
    if (many_s < 6 * few_s) fail_msg("%g s and %g s", few_s, many_s);
}

/* The search for the least memory ends when it is told to, says so, and what it names works. */
static void the_least_memory_keeps_to_its_effort(void **state)
{
    (void)state;
    slc_random_options options = slc_random_defaults();
    slc_profile *profile;
    slc_free_choices c;
    options.layers = (slc_random_range){60, 60};
    options.world = 4;
    assert_int_equal(slc_random_profile(&options, 4, &profile), SLUICE_OK);
    assert_int_equal(slc_free_choices_init(&c, &profile->job, true), SLUICE_OK);
    slc_work work = {0};
    slc_joint_request request = {.job = &profile->job,
                                 .times = &profile->times,
                                 .strategies = c.strategies,
                                 .recompute = c.recompute,
                                 .effort_s = 0.01,
                                 .quick = true,
                                 .work = &work};
    slc_strategy *strategies = c.strategies + profile->job.unit_count;
    bool cut;
    assert_int_equal(slc_least_memory_within(&request, 0.01, strategies, c.recomputed, &request.limit, &cut),
                     SLUICE_OK);
    assert_true(cut);
    assert_true(work.spent_s < 0.05);
    slc_joint_answer answer;
    assert_int_equal(slc_joint_plan(&request, &answer, NULL), SLUICE_OK);
    assert_true(answer.plan->arena_bytes <= request.limit);
    slc_plan_destroy(answer.plan);
    assert_int_equal(slc_least_memory_within(&request, 100, strategies, c.recomputed, &request.limit, &cut), SLUICE_OK);
    assert_false(cut);
    slc_free_choices_fini(&c);
    slc_profile_destroy(profile);
}

/* A refusal keeps to the effort too, the search for what it names included. */
static void refusals_keep_to_the_effort(void **state)
{
    (void)state;
    static const double efforts_s[] = {0.1, 0.3};
    for (size_t i = 0; i < (test_brief() ? 1 : 2); i++) {
        double one_s, spent_s = spent_on(200, efforts_s[i], 1, SLUICE_ERR_BUDGET, &one_s);
        if (spent_s > 1.2 * efforts_s[i]) fail_msg("spent %g s of %g s, one plan %g s", spent_s, efforts_s[i], one_s);
    }
}

/* The budget that a refusal names works within the effort in which it was found, also if that ended the search. */
static void what_a_refusal_names_works(void **state)
{
    (void)state;
    static const double efforts_s[] = {0.15, 0.6};
    static const char named[] = "config.budget_bytes = ";
    slc_random_options options = slc_random_defaults();
    options.world = 4;
    for (int cut = 1; cut >= 0; cut--) {
        slc_profile *profile;
        options.layers = cut ? (slc_random_range){150, 150} : (slc_random_range){8, 8};
        assert_int_equal(slc_random_profile(&options, 6, &profile), SLUICE_OK);
        slc_plan_request request = {.strategy = "auto",
                                    .schedule = slc_schedule_default,
                                    .times = &profile->times,
                                    .effort_s = efforts_s[!cut],
                                    .budget_bytes = 1};
        slc_plan_answer answer;
        assert_int_equal(slc_plan_for_budget(&profile->job, &request, &answer), SLUICE_ERR_BUDGET);
        const char *number = strstr(sluice_last_error(), named);
        assert_non_null(number);
        assert_int_equal(cut, strstr(sluice_last_error(), "at most this is needed") != NULL);
        request.budget_bytes = strtoull(number + sizeof named - 1, NULL, 10);
        assert_int_equal(slc_plan_for_budget(&profile->job, &request, &answer), SLUICE_OK);
        slc_plan_destroy(answer.plan);
        slc_profile_destroy(profile);
    }
}

/* A table of many small blocks next to a layer, on a link that one block saturates. */
static slc_profile *table_of_blocks(void)
{
    static const char text[] =
        "{\"version\": 1, \"world\": 4, \"link\": {\"bytes_per_s\": 1e9, \"block_bytes\": 65536},"
        "\"layers\": [{\"name\": \"table\", \"forward_s\": 0.1, \"backward_s\": 0.2},"
        "{\"name\": \"top\", \"forward_s\": 0.1, \"backward_s\": 0.2}],"
        "\"units\": [{\"name\": \"table\", \"parameters\": 8388608}, {\"name\": \"top\", \"parameters\": 262144}]}";
    slc_profile *profile;
    assert_int_equal(slc_profile_from_json(text, sizeof text - 1, &profile), SLUICE_OK);
    return profile;
}

/* Runs that are too many to plan within the effort are made longer, and the answer says so. The plan is no slower than
 * the fastest baseline with all of them. */
static void too_many_blocks_are_sent_in_longer_runs(void **state)
{
    (void)state;
    slc_profile *profile = table_of_blocks();
    slc_free_choices c;
    slc_simple_plan best;
    assert_int_equal(slc_free_choices_init(&c, &profile->job, false), SLUICE_OK);
    assert_int_equal(slc_simple_plan_fastest_uniform(profile, UINT64_MAX, &best), SLUICE_OK);
    for (int many = 0; many < 2; many++) {
        slc_work work = {0};
        const slc_joint_request request = {.job = &profile->job,
                                           .times = &profile->times,
                                           .strategies = c.strategies,
                                           .recompute = c.recompute,
                                           .limit = UINT64_MAX,
                                           .effort_s = many ? 0.02 : 0.2,
                                           .work = &work};
        slc_joint_answer answer;
        assert_int_equal(slc_joint_plan(&request, &answer, NULL), SLUICE_OK);
        assert_int_equal(many, strstr(answer.note, "runs of") != NULL);
        assert_true(answer.effort_s <= 1.2 * request.effort_s);
        assert_true(answer.forecast.step_s <= best.step_s * (1 + 1e-9));
        slc_plan_destroy(answer.plan);
    }
    slc_free_choices_fini(&c);
    slc_profile_destroy(profile);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_clock_changes_a_plan),
        cmocka_unit_test(a_time_limit_cuts),
        cmocka_unit_test(few_steps_are_planned_little),
        cmocka_unit_test(one_rank_has_nothing_to_choose),
        cmocka_unit_test(more_effort_is_no_worse),
        cmocka_unit_test(baselines_keep_to_the_effort),
        cmocka_unit_test(orders_of_deep_jobs_count),
        cmocka_unit_test(the_least_memory_keeps_to_its_effort),
        cmocka_unit_test(refusals_keep_to_the_effort),
        cmocka_unit_test(what_a_refusal_names_works),
        cmocka_unit_test(too_many_blocks_are_sent_in_longer_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
