/* Fused units: a grouping must keep its contract and never make a step longer in the simulator. Plans of all schedulers
 * for fused jobs must pass the validator, run on two lanes at any speed, and have one gather a direction. Strategies by
 * name must find the layers in fused units. A job that fits a budget apart must be planned whatever is fused. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "lib/plan/fused_job.h"
#include "sched/joint/joint.h"
#include "sched/planner.h"
#include "sched/planner/parts.h"
#include "sched/study/random_profile.h"
#include "sched/simulate/simulate.h"
#include "tests/support/sched/two_lanes.h"
#include "sched/layout/make_plan.h"
#include "tests/support/scale.h"

#include <stdlib.h>

enum { JOBS = 150, RUNS = 4, PROFILES = 12 };

/* Draws small units, many of one type and all with blocks of one length. */
static void draw_job(test_job *t, uint64_t seed)
{
    test_dice dice = {.seed = seed};
    do test_job_draw(t, &dice);
    while (!t->job.unit_count);
    test_recomputable_uses(t);
    uint64_t grain = 16 * (uint64_t)t->job.world, block = grain * (8 + test_below(&dice, 80));
    for (uint32_t u = 0; u < t->job.unit_count; u++) {
        slc_unit *unit = &t->units[u];
        if (unit->role == SLC_UNIT_ROWS) {
            unit->dtype = t->units[unit->partner].dtype;
            continue;
        }
        unit->block_elements = block;
        if (test_below(&dice, 3)) unit->dtype = SLUICE_FP32;
    }
}

/* Draws groups of neighbours that may be one, also larger than a base block. */
static uint32_t draw_groups(const slc_job *job, test_dice *dice, uint32_t *group)
{
    uint32_t joined = 0;
    for (uint32_t u = 0; u < job->unit_count; u++) group[u] = u;
    for (uint32_t u = 0; u < job->unit_count; u++)
        for (uint32_t v = u + 1; v < job->unit_count; v++)
            if (group[v] == v && slc_units_join(&job->units[u], &job->units[v]) && test_below(dice, 4)) {
                group[v] = group[u];
                joined++;
                break;
            }
    return joined;
}

static void fused_plans_run_at_any_speed(void **state)
{
    (void)state;
    static test_job t;
    two_lanes *lanes = malloc(sizeof *lanes);
    const uint32_t jobs = test_rounds(JOBS);
    uint32_t joined = 0;
    assert_non_null(lanes);
    for (uint64_t seed = 0; seed < jobs; seed++) {
        test_dice dice = {.seed = 7000 + seed};
        uint32_t group[TEST_UNITS];
        slc_strategy strategies[TEST_UNITS];
        bool recompute[TEST_LAYERS];
        slc_fused_job fused;
        slc_times times;
        draw_job(&t, seed);
        joined += draw_groups(&t.job, &dice, group);
        assert_int_equal(slc_fused_job_init(&t.job, group, &fused), SLUICE_OK);
        test_strategies_draw(&fused.job, &dice, strategies);
        test_recompute_draw(&fused.job, &dice, recompute);
        assert_int_equal(slc_times_estimate(&fused.job, &times), SLUICE_OK);
        const slc_scheduler *scheduler;
        for (size_t s = 0; (scheduler = slc_scheduler_at(s)); s++) {
            const slc_scheduling in = {.job = &fused.job,
                                       .strategies = strategies,
                                       .recompute = recompute,
                                       .times = &times,
                                       .limit = UINT64_MAX,
                                       .seed = seed};
            slc_plan *plan;
            slc_forecast forecast;
            if (slc_plan_make(&in, scheduler, &plan))
                fail_msg("job %llu, %s: %s", (unsigned long long)seed, scheduler->name, sluice_last_error());
            assert_int_equal(slc_plan_validate(&fused.job, plan), SLUICE_OK);
            assert_int_equal(slc_simulate(&fused.job, &times, plan, NULL, &forecast), SLUICE_OK);
            for (uint64_t run = 0; run < RUNS; run++) {
                two_lanes_run(lanes, &fused.job, plan, seed * RUNS + run);
                if (lanes->error[0])
                    fail_msg("job %llu, %s, run %llu: %s", (unsigned long long)seed, scheduler->name,
                             (unsigned long long)run, lanes->error);
                assert_true(lanes->peak <= plan->arena_bytes);
            }
            slc_plan_destroy(plan);
        }
        slc_times_fini(&times);
        slc_fused_job_fini(&fused);
    }
    assert_true(joined > jobs / 2);
    free(lanes);
}

static void one_gather_covers_a_direction(void **state)
{
    (void)state;
    static test_job t;
    const uint32_t jobs = test_rounds(JOBS);
    for (uint64_t seed = 0; seed < jobs; seed++) {
        test_dice dice = {.seed = 8000 + seed};
        uint32_t group[TEST_UNITS], first, last;
        slc_fused_job fused;
        draw_job(&t, seed);
        draw_groups(&t.job, &dice, group);
        assert_int_equal(slc_fused_job_init(&t.job, group, &fused), SLUICE_OK);
        for (uint32_t u = 0; u < fused.job.unit_count; u++) {
            const slc_unit *unit = &fused.job.units[u];
            slc_window window;
            if (!unit->fused) continue;
            uint32_t begin = unit->uses[0].layer, end = unit->uses[unit->use_count - 1].layer;
            assert_int_equal(end - begin + 1, unit->use_count);
            assert_true(slc_unit_window(&fused.job, unit, true, 0, &window));
            assert_true(window.first_slot == begin && window.last_slot >= end);
            assert_false(slc_unit_window(&fused.job, unit, true, 2, &window));
            assert_false(slc_unit_window(&fused.job, unit, false, 1, &window));
            slc_unit_gradient_slots(&fused.job, unit, &first, &last);
            assert_int_equal(first, slc_backward_slot(&fused.job, end));
            assert_int_equal(last, slc_backward_slot(&fused.job, begin));
        }
        slc_fused_job_fini(&fused);
    }
}

static void check_groups(const slc_job *job, const slc_fuse_request *request, const uint32_t *group)
{
    for (uint32_t u = 0; u < job->unit_count; u++) {
        uint64_t elements = 0;
        uint32_t parts = 0, layer = 0;
        assert_int_equal(group[group[u]], group[u]);
        if (group[u] != u) continue;
        for (uint32_t v = u; v < job->unit_count; v++) {
            const slc_unit *unit = &job->units[v];
            if (group[v] != u) continue;
            elements += unit->elements;
            if (parts++) assert_int_equal(unit->uses[0].layer, layer + 1);
            layer = unit->uses[0].layer;
            if (v == u) continue;
            assert_true(unit->trainable && job->units[u].trainable && unit->use_count == 1);
            assert_true(unit->role == SLC_UNIT_WHOLE && job->units[u].role == SLC_UNIT_WHOLE);
            assert_int_equal(unit->dtype, job->units[u].dtype);
            assert_false(request->alone[v] || request->alone[u]);
            assert_int_equal(request->plan->forced[v], request->plan->forced[u]);
        }
        if (parts < 2) continue;
        assert_true(elements <= job->units[u].block_elements);
        assert_true(elements * sluice_dtype_bytes(job->units[u].dtype) <= request->bytes);
    }
}

static void groups_keep_to_their_limits(void **state)
{
    (void)state;
    static const char *const schedules[] = {"serial", "one_ahead", "greedy", slc_schedule_default};
    static test_job t;
    const uint32_t jobs = test_rounds(JOBS);
    uint32_t joined[2] = {0};
    for (uint64_t seed = 0; seed < 2 * jobs; seed++) {
        test_dice dice = {.seed = 9000 + seed};
        uint32_t group[TEST_UNITS], again[TEST_UNITS];
        bool alone[TEST_UNITS];
        slc_strategy forced[TEST_UNITS];
        draw_job(&t, seed);
        for (uint32_t u = 0; u < t.job.unit_count; u++) {
            alone[u] = test_below(&dice, 6) == 0;
            forced[u] = test_below(&dice, 5) ? SLC_STRATEGIES : (slc_strategy)test_below(&dice, SLC_EXACT_STRATEGIES);
        }
        slc_plan_request plan = {.strategy = "auto", .schedule = schedules[seed / 2 % 4], .forced = forced};
        slc_fuse_request request = {.plan = &plan, .alone = alone, .bytes = SLC_FUSE_AUTO};
        if (seed % 2) request.bytes = test_below(&dice, 20000);
        if (slc_fuse_units(&t.job, &request, group))
            fail_msg("job %llu: %s", (unsigned long long)seed, sluice_last_error());
        check_groups(&t.job, &request, group);
        assert_int_equal(slc_fuse_units(&t.job, &request, again), SLUICE_OK);
        assert_memory_equal(group, again, t.job.unit_count * sizeof *group);
        for (uint32_t u = 0; u < t.job.unit_count; u++) joined[seed % 2] += group[u] != u;
    }
    assert_true(jobs < JOBS / 4 ||
                (joined[0] > jobs / 15 && joined[1] > jobs / 15)); /* few jobs may have none to join */
}

/* Returns true if two layers of so many elements are fused. There are two ranks and a link of 1 MB/s with 1 ms: a saved
 * operation is 1 ms, and an element takes 2 us to move. */
static bool fuses_two(uint64_t first, uint64_t second, double slot_s)
{
    const char *layers[] = {"a", "b"};
    slc_use uses[] = {{0, true}, {1, true}};
    slc_unit units[] = {{"a", first, 1 << 20, SLUICE_FP32, true, &uses[0], .use_count = 1},
                        {"b", second, 1 << 20, SLUICE_FP32, true, &uses[1], .use_count = 1}};
    slc_job job = {.world = 2,
                   .micro_batches = 1,
                   .states = 2,
                   .layer_count = 2,
                   .layers = layers,
                   .units = units,
                   .unit_count = 2};
    double slots[] = {slot_s, slot_s, slot_s, slot_s}, recompute[] = {0, 0};
    slc_link_line line = {1e-3, 1e6};
    slc_times times = {.slot_s = slots,
                       .recompute_s = recompute,
                       .link = {.reduce_scatter = line, .all_gather = line, .sigma = 1, .block_bytes = 1 << 20}};
    slc_plan_request plan = {.strategy = "sdp", .schedule = "priority", .times = &times};
    slc_fuse_request request = {.plan = &plan, .bytes = SLC_FUSE_AUTO};
    uint32_t group[2];
    assert_int_equal(slc_fuse_units(&job, &request, group), SLUICE_OK);
    return group[1] == 0;
}

static void fuses_what_costs_less_than_a_latency(void **state)
{
    (void)state;
    assert_true(fuses_two(32, 32, 1e-3));
    assert_true(fuses_two(8192, 416, 1e-4));
    assert_false(fuses_two(8192, 8192, 20e-3)); /* 16 ms each way, which the group's slots hide */
    assert_true(fuses_two(8192, 8192, 1e-5));   /* 16 ms again, but no slot is long enough to hide them */
    assert_false(
        fuses_two(32, 416, 20e-3)); /* compute hides the second layer's; in a fused unit the step would wait for it */
}

static slc_random_options many_tiny_layers(uint64_t seed)
{
    slc_random_options options = slc_random_defaults();
    options.layers = (slc_random_range){2, 40};
    options.unit_bytes = (slc_random_range){4 << 10, 256 << 10};
    options.compute_ratio = (slc_random_range){0.1, 5};
    options.bytes_per_s = 125e6;
    options.latency_s = 50e-6 * (double)(1 + seed % 4);
    return options;
}

static double step_of(const slc_job *job, const slc_times *times, slc_strategy strategy, const slc_scheduler *scheduler)
{
    slc_strategy strategies[64];
    slc_plan *plan;
    slc_forecast forecast;
    for (uint32_t u = 0; u < job->unit_count; u++) strategies[u] = strategy;
    slc_scheduling in = {.job = job, .strategies = strategies, .times = times, .limit = UINT64_MAX};
    if (slc_plan_make(&in, scheduler, &plan)) fail_msg("%s", sluice_last_error());
    assert_int_equal(slc_simulate(job, times, plan, NULL, &forecast), SLUICE_OK);
    slc_plan_destroy(plan);
    return forecast.step_s;
}

static void joint_plan_agrees(const slc_job *job, const slc_times *times)
{
    slc_strategy strategies[64];
    for (uint32_t u = 0; u < job->unit_count; u++) strategies[u] = SLC_STRATEGIES;
    slc_joint_request ask = {
        .job = job, .times = times, .strategies = strategies, .limit = UINT64_MAX, .effort_s = 0.1};
    slc_joint_answer answer;
    slc_forecast again;
    if (slc_joint_plan(&ask, &answer, NULL)) fail_msg("%s", sluice_last_error());
    assert_int_equal(slc_plan_validate(job, answer.plan), SLUICE_OK);
    assert_int_equal(slc_simulate(job, times, answer.plan, NULL, &again), SLUICE_OK);
    assert_true(again.step_s == answer.forecast.step_s);
    for (int k = SLC_SDP; k <= SLC_FSDP; k++)
        assert_true(answer.forecast.step_s <=
                    step_of(job, times, (slc_strategy)k, &slc_scheduler_one_ahead) * (1 + 1e-9));
    slc_plan_destroy(answer.plan);
}

static void no_step_gets_longer(void **state)
{
    (void)state;
    const uint32_t profiles = test_rounds(PROFILES);
    uint32_t joined = 0;
    for (uint64_t seed = 1; seed <= profiles; seed++) {
        slc_random_options options = many_tiny_layers(seed);
        slc_profile *profile;
        uint32_t group[64];
        assert_int_equal(slc_random_profile(&options, seed, &profile), SLUICE_OK);
        for (uint32_t u = 0; u < profile->job.unit_count; u++) profile->block_bytes[u] = 1 << 20;
        assert_int_equal(slc_profile_set_world(profile, profile->job.world), SLUICE_OK);
        const slc_job *job = &profile->job;
        const slc_scheduler *scheduler;
        for (size_t s = 0; (scheduler = slc_scheduler_at(s)); s++) {
            slc_plan_request plan = {.strategy = "auto", .schedule = scheduler->name, .times = &profile->times};
            slc_fuse_request request = {.plan = &plan, .bytes = SLC_FUSE_AUTO};
            slc_fused_job fused;
            assert_int_equal(slc_fuse_units(job, &request, group), SLUICE_OK);
            assert_int_equal(slc_fused_job_init(job, group, &fused), SLUICE_OK);
            joined += job->unit_count - fused.job.unit_count;
            if (scheduler == &slc_scheduler_ilp)
                joint_plan_agrees(&fused.job, &profile->times);
            else
                for (int k = SLC_SDP; k <= SLC_FSDP; k++)
                    assert_true(step_of(&fused.job, &profile->times, (slc_strategy)k, scheduler) <=
                                step_of(job, &profile->times, (slc_strategy)k, scheduler) * (1 + 1e-9));
            slc_fused_job_fini(&fused);
        }
        slc_profile_destroy(profile);
    }
    assert_true(joined > profiles);
}

/* A budget that works for separate units must work with any fusing. */
static void fusing_keeps_to_the_budget(void **state)
{
    (void)state;
    static test_job t;
    const uint32_t jobs = test_rounds(JOBS);
    uint32_t refused = 0;
    for (uint64_t seed = 0; seed < jobs; seed++) {
        uint32_t group[TEST_UNITS], loose[TEST_UNITS];
        slc_fused_job fused;
        slc_plan_answer answer;
        draw_job(&t, seed);
        slc_plan_request plan = {.strategy = "auto", .schedule = "one_ahead"};
        slc_fuse_request request = {.plan = &plan, .bytes = UINT64_MAX / 2};
        assert_int_equal(slc_plan_for_budget(&t.job, &plan, &answer), SLUICE_OK);
        plan.budget_bytes = answer.plan->arena_bytes + t.job.reserved_bytes;
        slc_plan_destroy(answer.plan);
        plan.budget_bytes -= plan.budget_bytes / 4 * (seed % 2);
        while (slc_plan_for_budget(&t.job, &plan, &answer) == SLUICE_ERR_BUDGET)
            plan.budget_bytes += plan.budget_bytes / 50 + 64;
        slc_plan_destroy(answer.plan);
        assert_int_equal(slc_fuse_units(&t.job, &request, group), SLUICE_OK);
        assert_int_equal(slc_fused_job_init(&t.job, group, &fused), SLUICE_OK);
        if (slc_plan_for_budget(&fused.job, &plan, &answer))
            fail_msg("job %llu: %s", (unsigned long long)seed, sluice_last_error());
        slc_plan_destroy(answer.plan);
        slc_fused_job_fini(&fused);
        plan.budget_bytes = 0;
        assert_int_equal(slc_fuse_units(&t.job, &request, loose), SLUICE_OK);
        refused += memcmp(group, loose, t.job.unit_count * sizeof *group) != 0;
    }
    assert_true(refused > 0 || jobs < JOBS / 4);
}

/* ---- Names ---- */

static const char *layers[] = {"a", "b", "c", "d"};
static slc_use uses[] = {{0, true}, {1, false}, {2, true}, {3, true}};
static slc_unit units[] = {{"a", 32, 64, SLUICE_FP32, true, &uses[0], .use_count = 1},
                           {"b", 32, 64, SLUICE_FP32, true, &uses[1], .use_count = 1},
                           {"c", 32, 64, SLUICE_FP32, true, &uses[2], .use_count = 1},
                           {"d", 32, 64, SLUICE_FP32, true, &uses[3], .use_count = 1}};
static const slc_job four = {
    .world = 2, .micro_batches = 1, .layer_count = 4, .layers = layers, .units = units, .unit_count = 4};

static void layers_of_a_fused_unit_are_found_by_name(void **state)
{
    (void)state;
    static const uint32_t group[] = {0, 0, 0, 3};
    static const struct {
        const char *text;
        slc_strategy strategy; /* SLC_STRATEGIES: refused */
    } files[] = {
        {"{\"layers\": {\"a..c\": \"fsdp\", \"d\": \"dp\"}}", SLC_FSDP},
        {"{\"layers\": {\"a\": \"sdp\", \"b\": \"sdp\", \"c\": \"sdp\", \"d\": \"dp\"}}", SLC_SDP},
        {"{\"layers\": {\"b\": \"sdp\", \"*\": \"sdp\", \"d\": \"dp\"}}", SLC_SDP},
        {"{\"layers\": {\"a..b\": \"sdp\", \"c\": \"sdp\", \"d\": \"dp\"}}", SLC_SDP},
        {"{\"layers\": {\"a..b\": \"sdp\", \"c\": \"oss\", \"d\": \"dp\"}}", SLC_STRATEGIES},
        {"{\"layers\": {\"b\": \"sdp\", \"*\": \"dp\"}}", SLC_STRATEGIES},
        {"{\"layers\": {\"a\": \"sdp\", \"b\": \"sdp\", \"c\": \"oss\", \"d\": \"dp\"}}", SLC_STRATEGIES},
        {"{\"layers\": {\"a\": \"sdp\", \"d\": \"dp\"}}", SLC_STRATEGIES},
        {"{\"layers\": {\"a\": \"zero\", \"*\": \"dp\"}}", SLC_STRATEGIES},
    };
    slc_fused_job fused;
    slc_strategy apart[4];
    assert_int_equal(slc_strategies_from_json(
                         &four, "file", "{\"layers\": {\"a..c\": \"fsdp\", \"b\": \"oss\", \"d\": \"dp\"}}", apart),
                     SLUICE_OK);
    assert_true(apart[0] == SLC_FSDP && apart[1] == SLC_OSS && apart[2] == SLC_FSDP && apart[3] == SLC_DP);
    assert_int_equal(slc_fused_job_init(&four, group, &fused), SLUICE_OK);
    assert_string_equal(fused.job.units[0].name, "a..c");
    assert_int_equal(fused.job.units[0].elements, 96);
    assert_true(fused.job.units[0].uses[1].backward_value); /* between two that need it */
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        slc_strategy got[2];
        sluice_status status = slc_strategies_from_json(&fused.job, "file", files[i].text, got);
        assert_int_equal(status, files[i].strategy == SLC_STRATEGIES ? SLUICE_ERR_FORMAT : SLUICE_OK);
        if (!status) assert_true(got[0] == files[i].strategy && got[1] == SLC_DP);
    }
    slc_fused_job_fini(&fused);
}

static void refuses_groups_that_are_none(void **state)
{
    (void)state;
    static const uint32_t bad[][4] = {{0, 1, 0, 3}, {1, 1, 2, 3}, {0, 0, 1, 3}};
    slc_fused_job fused;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(slc_fused_job_init(&four, bad[i], &fused), SLUICE_ERR_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fused_plans_run_at_any_speed),
        cmocka_unit_test(one_gather_covers_a_direction),
        cmocka_unit_test(groups_keep_to_their_limits),
        cmocka_unit_test(fuses_what_costs_less_than_a_latency),
        cmocka_unit_test(no_step_gets_longer),
        cmocka_unit_test(fusing_keeps_to_the_budget),
        cmocka_unit_test(layers_of_a_fused_unit_are_found_by_name),
        cmocka_unit_test(refuses_groups_that_are_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
