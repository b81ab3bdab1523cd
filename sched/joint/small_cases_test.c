/* The search over all orders must find no slower step than drawn orders have, and the joint plan must be close to what
 * it finds, on jobs so small that the search ends. */
#include "ilp/slot_model.h"
#include "lib/base/status.h"
#include "tests/support/sched/every_order.h"
#include "sched/joint/joint.h"
#include "tests/support/plan/random_job.h"
#include "tests/support/sched/legal_order.h"
#include "sched/study/random_profile.h"
#include "sched/layout/make_plan.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { CASES = 100, DRAWN_ORDERS = 60, UNITS = 3 };
static const double worth = 0.001, rounding = 1e-9;

typedef struct {
    slc_profile *profile;
    slc_strategy strategies[UNITS];
    uint64_t limit;
    test_dice dice;
} small_case;

static slc_scheduling scheduling(const small_case *c)
{
    return (slc_scheduling){
        .job = &c->profile->job, .strategies = c->strategies, .times = &c->profile->times, .limit = c->limit};
}

static uint64_t arena_of(const small_case *c, const slc_scheduler *scheduler)
{
    slc_scheduling in = scheduling(c);
    slc_plan *plan;
    assert_int_equal(slc_plan_make(&in, scheduler, &plan), SLUICE_OK);
    uint64_t bytes = plan->arena_bytes;
    slc_plan_destroy(plan);
    return bytes;
}

/* Draws one or two layers, units of one or two equal blocks, strategies and a limit between serial's and
 * one_ahead's. */
static void small_case_init(small_case *c, uint64_t seed)
{
    slc_random_options options = slc_random_defaults();
    options.layers = (slc_random_range){1, 2};
    options.unit_bytes = (slc_random_range){8e6, 40e6};
    options.micro_batches = 1;
    options.latency_s = options.kappa = options.update_s_per_element = 0;
    options.sigma = 1;
    *c = (small_case){.dice = {.seed = seed}, .limit = UINT64_MAX >> 1};
    assert_int_equal(slc_random_profile(&options, seed, &c->profile), SLUICE_OK);
    slc_job *job = &c->profile->job;
    uint64_t grain = 16 * (uint64_t)job->world;
    for (uint32_t u = 0; u < job->unit_count; u++) {
        slc_unit *unit = &job->units[u];
        uint32_t runs = job->unit_count < 3 ? 1 + test_below(&c->dice, 2) : 1;
        unit->block_elements = (unit->elements / runs + grain - 1) / grain * grain;
        unit->elements = runs * unit->block_elements;
        c->strategies[u] = (slc_strategy)test_below(&c->dice, SLC_EXACT_STRATEGIES);
    }
    uint64_t serial = arena_of(c, &slc_scheduler_serial), ahead = arena_of(c, &slc_scheduler_one_ahead);
    uint64_t least = serial < ahead ? serial : ahead, most = serial < ahead ? ahead : serial;
    c->limit = least + (most - least) * test_below(&c->dice, 5) / 4;
    if (!test_below(&c->dice, 3)) c->limit = 2 * most;
}

static slc_every_order_answer best_of(const small_case *c)
{
    const slc_job *job = &c->profile->job;
    double serial_s = 0;
    for (uint32_t s = 0; s < slc_job_slots(job); s++) serial_s += c->profile->times.slot_s[s];
    for (uint32_t u = 0; u < job->unit_count; u++)
        serial_s += 4 * slc_operation_s(job, &c->profile->times, SLC_ITEM_REDUCE_SCATTER, &job->units[u],
                                        job->units[u].elements);
    slc_every_order_request ask = {.job = job,
                                   .times = &c->profile->times,
                                   .strategies = c->strategies,
                                   .limit = c->limit,
                                   .faster_than_s = 2 * serial_s,
                                   .worth = worth,
                                   .every_way = true};
    slc_every_order_answer answer;
    assert_int_equal(slc_every_order(&ask, &answer), SLUICE_OK);
    assert_true(answer.complete);
    assert_non_null(answer.plan);
    assert_int_equal(slc_plan_validate(job, answer.plan), SLUICE_OK);
    assert_true(answer.plan->arena_bytes <= c->limit);
    return answer;
}

/* The step of a legal order that is drawn; infinity: it does not fit. */
static double drawn_step(small_case *c)
{
    slc_scheduling in = scheduling(c);
    slc_order order = {0};
    slc_plan *plan = NULL;
    slc_forecast forecast = {.step_s = (double)INFINITY};
    if (test_order_draw(in.job, in.strategies, &c->dice, &order))
        assert_int_equal(slc_plan_from_order(&in, &order, &slc_scheduler_ilp, &plan), SLUICE_OK);
    if (plan && plan->arena_bytes <= c->limit)
        assert_int_equal(slc_simulate(in.job, in.times, plan, NULL, &forecast), SLUICE_OK);
    slc_plan_destroy(plan);
    slc_order_fini(&order);
    return forecast.step_s;
}

static void no_order_is_faster_than_the_best(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= CASES; seed++) {
        small_case c;
        small_case_init(&c, seed);
        slc_every_order_answer best = best_of(&c);
        for (int i = 0; i < DRAWN_ORDERS; i++) {
            double step_s = drawn_step(&c);
            if (step_s < best.step_s * (1 - worth - rounding))
                fail_msg("seed %llu: best of all %.9f, drawn %.9f", (unsigned long long)seed, best.step_s, step_s);
        }
        slc_plan_destroy(best.plan);
        slc_profile_destroy(c.profile);
    }
}

/* The joint plan may be slower than the best of all orders. It is left to the local search to close the gap, from
 * orders that are all within what overlap can save. docs/planning.md has 98.6 % of 414 cases within 1 %; of 3,600
 * drawn ones here 1 in 100 is more than 1 % behind, and the farthest 13 %. The search gets as many tries as it uses up
 * here and no deadline that a loaded machine could reach, so the figures are the same everywhere. */
static const double farthest = 0.25, mean_behind = 0.005, near = 0.01;
enum { FAR_CASES = CASES / 12 }; /* at most so many are behind by more than `near` */
/* Without the slot model a search that begins at serial, if nothing else fits, may stay there. */
static const double farthest_unsolved = 0.5, mean_unsolved = 0.03;

static void joint_is_near_the_best_and_never_faster(void **state)
{
    (void)state;
    const bool solved = slc_slot_model_solver() != NULL;
    double sum = 0, most = 0;
    int far = 0;
    for (uint64_t seed = 1; seed <= CASES; seed++) {
        small_case c;
        small_case_init(&c, seed);
        slc_every_order_answer best = best_of(&c);
        slc_joint_request ask = {.job = &c.profile->job,
                                 .times = &c.profile->times,
                                 .strategies = c.strategies,
                                 .limit = c.limit,
                                 .effort_s = 60,
                                 .tries = 2000};
        slc_joint_answer shipped;
        assert_int_equal(slc_joint_plan(&ask, &shipped, NULL), SLUICE_OK);
        const double behind = shipped.forecast.step_s / best.step_s - 1;
        sum += behind;
        far += behind > near;
        if (behind > most) most = behind;
        if (shipped.forecast.step_s < best.step_s * (1 - worth - rounding))
            fail_msg("seed %llu: best of all %.9f, joint %.9f", (unsigned long long)seed, best.step_s,
                     shipped.forecast.step_s);
        if (behind > (solved ? farthest : farthest_unsolved))
            fail_msg("seed %llu: best of all %.9f, joint %.9f (%s), %.1f %% behind", (unsigned long long)seed,
                     best.step_s, shipped.forecast.step_s, shipped.member, 100 * behind);
        slc_plan_destroy(shipped.plan);
        slc_plan_destroy(best.plan);
        slc_profile_destroy(c.profile);
    }
    print_message("joint behind the best of all orders: mean %.2f %%, most %.2f %%, %d of %d by more than 1 %%\n",
                  100 * sum / CASES, 100 * most, far, CASES);
    assert_true(sum / CASES <= (solved ? mean_behind : mean_unsolved));
    if (solved) assert_true(far <= FAR_CASES);
}

static void other_jobs_are_refused(void **state)
{
    (void)state;
    small_case c;
    small_case_init(&c, 1);
    slc_every_order_answer answer;
    slc_every_order_request ask = {.job = &c.profile->job,
                                   .times = &c.profile->times,
                                   .strategies = c.strategies,
                                   .limit = c.limit,
                                   .faster_than_s = 1};
    c.profile->times.link.kappa = 0.5;
    assert_int_equal(slc_every_order(&ask, &answer), SLUICE_ERR_ARGUMENT);
    c.profile->times.link.kappa = 0;
    c.profile->job.barrier = true;
    assert_int_equal(slc_every_order(&ask, &answer), SLUICE_ERR_ARGUMENT);
    slc_profile_destroy(c.profile);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_order_is_faster_than_the_best),
        cmocka_unit_test(joint_is_near_the_best_and_never_faster),
        cmocka_unit_test(other_jobs_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
