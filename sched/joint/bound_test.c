/* The slot model's bounds: no valid plan may be below a bound that is worked out or printed for its job and its memory.
 * Plans are those of every scheduler and of random legal orders, with late runs and updates on either lane, searched
 * and not; their memory is all that they could want, or just their own arena. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "ilp/slot_model.h"
#include "lib/base/status.h"
#include "tests/support/sched/drawn_plan.h"
#include "sched/layout/make_plan.h"
#include "sched/joint/joint.h"
#include "sched/joint/least_memory.h"
#include "sched/search/local_search.h"
#include "sched/search/update_lane.h"
#include "sched/study/random_profile.h"
#include "tests/support/scale.h"
#include "tests/support/sched/legal_order.h"
#include "tests/support/seed.h"

#include <math.h>

enum { JOBS = 42, ORDERS = 2, TRIES = 60, PROFILES = 3 };

static const double TOLERANCE = 1e-3; /* share of a step: simulated ones of no steady state are means */

typedef struct {
    drawn_plan d;
    uint64_t seed;
    uint8_t recompute[TEST_LAYERS];
    double roomy_bound_s; /* for the drawn choices, whatever memory there is */
    uint32_t compared, tight, below, priced, near;
    double most_below;
} bounding;

static void compare(bounding *b, const char *what, double step_s, double bound_s)
{
    b->compared++;
    b->tight += bound_s > 0.98 * step_s;
    const double below = bound_s / step_s - 1;
    if (below <= TOLERANCE) return;
    b->below++;
    b->most_below = fmax(b->most_below, below);
    print_error("job %llu: %s takes %.9f s, %.2f %% below a bound of %.9f s\n", (unsigned long long)b->seed, what,
                step_s, 100 * below, bound_s);
}

/* Prices alone give no more than the program that has all rows, and mostly hardly less. */
static void check_priced(bounding *b, slc_slot_request model, double relaxed_s)
{
    slc_slot_solution solution;
    model.proves = true;
    assert_int_equal(slc_slot_model_solve(&model, &solution), SLUICE_OK);
    assert_true(solution.found && solution.proven_s > 0);
    assert_true(solution.proven_s <= relaxed_s * (1 + 1e-6));
    b->priced++;
    b->near += solution.proven_s > 0.99 * relaxed_s;
    slc_slot_solution_fini(&solution);
}

static double bound_of(bounding *b, uint64_t limit)
{
    uint8_t allowed[TEST_UNITS];
    double relaxed_s, bound_s;
    for (uint32_t u = 0; u < b->d.t.job.unit_count; u++) allowed[u] = (uint8_t)(1 << b->d.strategies[u]);
    const slc_slot_request model = {.job = &b->d.t.job,
                                    .times = &b->d.times,
                                    .allowed = allowed,
                                    .recompute = b->recompute,
                                    .limit = limit,
                                    .gap = 0.003};
    if (slc_slot_model_bound(&model, &relaxed_s, &bound_s))
        fail_msg("job %llu: %s", (unsigned long long)b->seed, sluice_last_error());
    assert_true(relaxed_s <= bound_s * (1 + 1e-9));
    check_priced(b, model, relaxed_s);
    return bound_s;
}

/* Compares a plan of the drawn choices with their bounds, and destroys it. */
static void compare_plan(bounding *b, const char *what, slc_plan *plan)
{
    slc_forecast f;
    assert_int_equal(slc_simulate(&b->d.t.job, &b->d.times, plan, NULL, &f), SLUICE_OK);
    assert_int_equal(slc_plan_validate(&b->d.t.job, plan), SLUICE_OK);
    compare(b, what, f.step_s, b->roomy_bound_s);
    compare(b, what, f.step_s, bound_of(b, plan->arena_bytes));
    slc_plan_destroy(plan);
}

/* Makes a plan as fast as its search can within the plan's own memory. */
static void search(const bounding *b, const slc_scheduler *scheduler, slc_plan **plan)
{
    slc_work work = {0};
    slc_scheduling in = {.job = &b->d.t.job,
                         .strategies = b->d.strategies,
                         .recompute = b->d.recompute,
                         .times = &b->d.times,
                         .limit = (*plan)->arena_bytes,
                         .work = &work};
    const slc_search_options options = {.most_tries = TRIES,
                                        .patience = TRIES,
                                        .rounds = 2,
                                        .lanes = b->d.times.update_compute_s_per_element > 0,
                                        .seed = b->seed};
    slc_forecast f;
    assert_int_equal(slc_simulate(in.job, in.times, *plan, NULL, &f), SLUICE_OK);
    assert_int_equal(slc_updates_place(&in, scheduler, SLC_UPDATES_AUTO, 0, plan, &f), SLUICE_OK);
    assert_int_equal(slc_search_order(&in, scheduler, &options, plan, &f, NULL), SLUICE_OK);
}

static void plans_of_schedulers(bounding *b)
{
    const slc_scheduling in = {.job = &b->d.t.job,
                               .strategies = b->d.strategies,
                               .recompute = b->d.recompute,
                               .times = &b->d.times,
                               .limit = UINT64_MAX};
    const slc_scheduler *scheduler;
    for (size_t s = 0; (scheduler = slc_scheduler_at(s)); s++) {
        slc_plan *plan;
        if (slc_scheduler_is_joint(scheduler)) continue;
        assert_int_equal(slc_plan_make(&in, scheduler, &plan), SLUICE_OK);
        if ((b->seed + s) % 3 == 0) search(b, scheduler, &plan);
        compare_plan(b, scheduler->name, plan);
    }
    for (uint64_t n = 0; n < ORDERS; n++) {
        test_dice dice = {.seed = 1000 * b->seed + n};
        slc_order order = {0};
        slc_plan *plan;
        if (!test_order_draw(in.job, in.strategies, &dice, &order)) {
            slc_order_fini(&order);
            continue;
        }
        assert_int_equal(slc_plan_from_order(&in, &order, &slc_scheduler_one_ahead, &plan), SLUICE_OK);
        slc_order_fini(&order);
        if (n) search(b, &slc_scheduler_one_ahead, &plan);
        compare_plan(b, "a random order", plan);
    }
}

/* The bound that is printed is that of the answer; its plan is the fastest of many. */
static void compare_answer(bounding *b, const slc_strategy *strategies, const uint8_t *recompute, bool roomy)
{
    slc_strategy least_of[TEST_UNITS];
    bool again[TEST_LAYERS];
    slc_joint_answer answer;
    uint64_t least;
    slc_joint_request ask = {.job = &b->d.t.job,
                             .times = &b->d.times,
                             .strategies = strategies,
                             .recompute = recompute,
                             .limit = UINT64_MAX,
                             .tries = TRIES};
    if (!roomy) {
        assert_int_equal(slc_least_memory(&ask, least_of, again, &least), SLUICE_OK);
        ask.limit = least + least * (b->seed % 8) / 16;
    }
    assert_int_equal(slc_joint_plan(&ask, &answer, NULL), SLUICE_OK);
    compare(b, roomy ? "the joint plan" : "the joint plan of little memory", answer.forecast.step_s, answer.bound_s);
    slc_plan_destroy(answer.plan);
}

static void no_plan_is_below_a_bound(void **state)
{
    (void)state;
    if (!slc_slot_model_solver()) {
        print_message("SKIP: built without GLPK\n");
        skip();
    }
    static bounding b;
    slc_strategy all_free[TEST_UNITS];
    uint8_t any[TEST_LAYERS];
    const uint32_t jobs = test_rounds(JOBS);
    for (b.seed = 0; b.seed < jobs; b.seed++) {
        drawn_plan_init(&b.d, b.seed);
        if (b.seed % 6 == 5) b.d.t.job.micro_batches = 4 + (uint32_t)(b.seed % 5) / 2; /* more than the model has */
        slc_link *link = &b.d.times.link;
        if (b.seed % 2) link->thread_moves = true;
        if (b.seed % 5 == 0) link->sigma = 1, link->kappa = b.seed % 2 * 0.3;
        if (b.seed % 3) b.d.times.update_s_per_element = 2e-7;
        /* dp, which starts fewer operations, may be the fastest */
        if (b.seed % 8 == 4) link->operation_s = b.d.times.slot_s[0] / 4;
        b.d.times.update_compute_s_per_element = b.d.times.update_s_per_element / (double)(1 + b.seed % 4);
        for (uint32_t l = 0; l < b.d.t.job.layer_count; l++)
            b.recompute[l] = b.d.recompute[l], any[l] = b.d.t.can_recompute[l] ? 2 : 0;
        for (uint32_t u = 0; u < b.d.t.job.unit_count; u++) all_free[u] = SLC_STRATEGIES;
        b.roomy_bound_s = bound_of(&b, UINT64_MAX);
        plans_of_schedulers(&b);
        compare_answer(&b, b.d.strategies, b.recompute, true);
        compare_answer(&b, b.d.strategies, b.recompute, false);
        if (b.seed % 4 == 0) compare_answer(&b, all_free, any, b.seed % 8);
        drawn_plan_fini(&b.d);
    }
    print_message("%u comparisons, %u of them within 2 %%; %u plans below a bound, at most by %.2f %%; of %u bounds by "
                  "prices %u are within 1 %% of the program's\n",
                  b.compared, b.tight, b.below, 100 * b.most_below, b.priced, b.near);
    assert_int_equal(b.below, 0);
    assert_true(b.tight > b.compared / 20); /* bounds that say nothing would hold too */
    assert_true(b.near > b.priced / 2);
}

/* Jobs of so many slots that the model has only some positions, and micro-batches that stand for others. */
static void nor_in_long_steps(void **state)
{
    (void)state;
    if (!slc_slot_model_solver()) {
        print_message("SKIP: built without GLPK\n");
        skip();
    }
    slc_random_options options = slc_random_defaults();
    options.layers = (slc_random_range){14, 22};
    options.micro_batches = 5;
    const uint32_t profiles = test_rounds(PROFILES);
    for (uint64_t seed = 1; seed <= profiles; seed++) {
        slc_profile *profile;
        slc_strategy strategies[64], least_of[64];
        bool again[64];
        uint64_t least;
        slc_joint_answer answer;
        assert_int_equal(slc_random_profile(&options, test_seed(seed), &profile), SLUICE_OK);
        assert_true(profile->job.unit_count <= 64 && profile->job.layer_count <= 64);
        for (uint32_t u = 0; u < profile->job.unit_count; u++) strategies[u] = SLC_STRATEGIES;
        slc_joint_request ask = {
            .job = &profile->job, .times = &profile->times, .strategies = strategies, .effort_s = 0.9};
        assert_int_equal(slc_least_memory(&ask, least_of, again, &least), SLUICE_OK);
        ask.limit = least + least * seed / 4;
        assert_int_equal(slc_joint_plan(&ask, &answer, NULL), SLUICE_OK);
        const double below = answer.bound_s / answer.forecast.step_s - 1;
        print_message("%u slots in 5 micro-batches: the plan is %.2f %% above the bound\n",
                      slc_job_slots(&profile->job) * profile->job.micro_batches, -100 * below);
        if (below > TOLERANCE) fail_msg("profile %llu: below its bound", (unsigned long long)seed);
        assert_true(answer.bound_s > 0.7 * answer.forecast.step_s);
        slc_plan_destroy(answer.plan);
        slc_profile_destroy(profile);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_plan_is_below_a_bound),
        cmocka_unit_test(nor_in_long_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
