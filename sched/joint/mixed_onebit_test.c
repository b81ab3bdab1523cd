/* Under a compressed optimizer the joint plan must weigh onebit layer by layer: on slow links it must mix onebit and
 * sharded layers, and be faster than onebit for all units and than any other strategy for all units. */
#include "sched/joint/joint.h"
#include "sched/joint/least_memory.h"
#include "sched/simulate/simulate.h"
#include "sched/study/random_profile.h"
#include "tests/support/sched/two_lanes.h"
#include "sched/layout/make_plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { PROFILES = 5, BUDGETS = 4, TRIES = 30 };

typedef struct {
    slc_profile *profile;
    slc_strategy *strategies; /* all free */
    uint64_t least, whole;    /* arenas: the smallest of any plan, onebit for all units */
} compressed_case;

/* The fastest step of all schedulers within a limit if all units have one strategy; 0: none fits. */
static double best_of(const slc_profile *profile, slc_strategy strategy, uint64_t limit)
{
    const slc_job *job = &profile->job;
    const slc_scheduler *scheduler;
    double best = 0;
    slc_strategy *strategies = calloc(job->unit_count + 1, sizeof *strategies);
    assert_non_null(strategies);
    for (uint32_t u = 0; u < job->unit_count; u++) strategies[u] = strategy;
    for (size_t s = 0; (scheduler = slc_scheduler_at(s)); s++) {
        if (!scheduler->baseline) continue;
        slc_scheduling in = {.job = job, .strategies = strategies, .times = &profile->times, .limit = limit};
        slc_plan *plan;
        slc_forecast forecast;
        assert_int_equal(slc_plan_make(&in, scheduler, &plan), SLUICE_OK);
        assert_int_equal(slc_simulate(job, &profile->times, plan, NULL, &forecast), SLUICE_OK);
        if (plan->arena_bytes <= limit && (!best || forecast.step_s < best)) best = forecast.step_s;
        slc_plan_destroy(plan);
    }
    free(strategies);
    return best;
}

static double best_exact(const slc_profile *profile, uint64_t limit)
{
    double best = 0;
    for (int k = 0; k < SLC_EXACT_STRATEGIES; k++) {
        double step_s = best_of(profile, (slc_strategy)k, limit);
        if (step_s > 0 && (!best || step_s < best)) best = step_s;
    }
    return best;
}

static slc_joint_request request_of(const compressed_case *c)
{
    return (slc_joint_request){.job = &c->profile->job,
                               .times = &c->profile->times,
                               .strategies = c->strategies,
                               .limit = UINT64_MAX,
                               .effort_s = 60,
                               .tries = TRIES};
}

static void case_init(compressed_case *c, uint64_t seed, double gbit)
{
    slc_random_options options = slc_random_defaults();
    options.layers = (slc_random_range){5, 8};
    options.bytes_per_s = gbit * 1e9 / 8;
    options.world = 4;
    options.unit_blocks = 4; /* below TEST_BLOCKS for any draw */
    options.tied_share = 0;
    assert_int_equal(slc_random_profile(&options, seed, &c->profile), SLUICE_OK);
    assert_int_equal(slc_profile_set_compressed(c->profile, true), SLUICE_OK);
    const slc_job *job = &c->profile->job;
    c->strategies = calloc(job->unit_count + 1, sizeof *c->strategies);
    slc_strategy *other = calloc(job->unit_count + 1, sizeof *other);
    bool *recompute = calloc(job->layer_count, sizeof *recompute);
    assert_true(c->strategies && other && recompute);
    for (uint32_t u = 0; u < job->unit_count; u++) {
        c->strategies[u] = SLC_STRATEGIES;
        other[u] = SLC_ONEBIT;
    }
    slc_scheduling in = {.job = job, .strategies = other, .times = &c->profile->times, .limit = UINT64_MAX};
    assert_int_equal(slc_plan_measure(&in, &slc_scheduler_one_ahead, UINT64_MAX, &c->whole), SLUICE_OK);
    slc_joint_request request = request_of(c);
    assert_int_equal(slc_least_memory(&request, other, recompute, &c->least), SLUICE_OK);
    assert_true(c->least < c->whole);
    free(recompute);
    free(other);
}

static void case_fini(compressed_case *c)
{
    slc_profile_destroy(c->profile);
    free(c->strategies);
}

static bool mixes(const slc_plan *plan)
{
    uint32_t onebit = 0;
    for (uint32_t u = 0; u < plan->unit_count; u++) onebit += plan->strategies[u] == SLC_ONEBIT;
    return onebit && onebit < plan->unit_count;
}

/* At one budget the joint plan must never be slower than a uniform one. True: it mixes onebit with other strategies and
 * is faster than both. */
static bool beats_both(const compressed_case *c, uint64_t limit, two_lanes *lanes)
{
    slc_joint_request request = request_of(c);
    slc_joint_answer answer;
    request.limit = limit;
    assert_int_equal(slc_joint_plan(&request, &answer, NULL), SLUICE_OK);
    assert_true(answer.plan->arena_bytes <= limit);
    double step_s = answer.forecast.step_s, exact_s = best_exact(c->profile, limit);
    double onebit_s = best_of(c->profile, SLC_ONEBIT, limit);
    if (exact_s > 0) assert_true(step_s <= exact_s * (1 + 1e-9));
    if (onebit_s > 0) assert_true(step_s <= onebit_s * (1 + 1e-9));
    two_lanes_run(lanes, &c->profile->job, answer.plan, limit);
    if (lanes->error[0]) fail_msg("%s", lanes->error);
    bool both = mixes(answer.plan) && exact_s > 0 && step_s < 0.999 * exact_s;
    both = both && (!onebit_s || step_s < 0.999 * onebit_s);
    slc_plan_destroy(answer.plan);
    return both;
}

static void mixed_plans_beat_both(double gbit)
{
    static two_lanes lanes;
    for (uint64_t seed = 1; seed <= PROFILES; seed++) {
        compressed_case c;
        uint32_t wins = 0;
        case_init(&c, seed, gbit);
        for (uint32_t b = 1; b <= BUDGETS; b++)
            wins += beats_both(&c, c.least + (c.whole - c.least) / (BUDGETS + 1) * b, &lanes);
        if (wins < 2) fail_msg("seed %llu at %g Gbit/s: at %u budgets", (unsigned long long)seed, gbit, wins);
        case_fini(&c);
    }
}

static void on_1_gbit(void **state)
{
    (void)state;
    mixed_plans_beat_both(1);
}

static void on_4_gbit(void **state)
{
    (void)state;
    mixed_plans_beat_both(4);
}

/* Compression passes cost the thread what the link saves, so even with memory for onebit for all units not all of them
 * may be onebit. */
static void with_memory_for_all_on_fast_links(void **state)
{
    (void)state;
    static two_lanes lanes;
    uint32_t wins = 0;
    for (uint64_t seed = 1; seed <= PROFILES; seed++) {
        compressed_case c;
        case_init(&c, seed, 20);
        wins += beats_both(&c, 2 * c.whole, &lanes);
        case_fini(&c);
    }
    assert_true(wins > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(on_1_gbit),
        cmocka_unit_test(on_4_gbit),
        cmocka_unit_test(with_memory_for_all_on_fast_links),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
