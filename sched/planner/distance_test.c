/* A plan's distance to the bound: its parts add up, and if one cause is forced, the ladder names it. */
#include "ilp/slot_model.h"
#include "sched/layout/make_plan.h"
#include "sched/layout/parts.h"
#include "sched/planner/distance.h"
#include "sched/joint/simple_plans.h"
#include "sched/schedulers/slot_order.h"
#include "sched/simulate/simulate.h"
#include "sched/study/random_profile.h"
#include "tests/support/scale.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST_UNITS = 64 };

/* Six equal layers of 10 MB on two ranks, compute and communication of the same length; communication costs compute
 * nothing. */
static slc_random_options even_layers(double latency_s, uint32_t unit_blocks)
{
    slc_random_options options = slc_random_defaults();
    options.layers = (slc_random_range){6, 6};
    options.unit_bytes = (slc_random_range){10e6, 10e6};
    options.compute_ratio = options.time_spread = (slc_random_range){1, 1};
    options.activations = (slc_random_range){0.2, 0.2};
    options.world = 2;
    options.micro_batches = 1;
    options.latency_s = latency_s;
    options.kappa = 0;
    options.sigma = 1;
    options.tied_share = 0;
    options.unit_blocks = unit_blocks;
    return options;
}

/* A plan that was not searched for: all units have one strategy. */
typedef struct {
    slc_profile *profile;
    slc_strategy strategies[MOST_UNITS];
    slc_joint_request request;
    slc_joint_answer answer;
    slc_plan_distance distance;
} made_plan;

static slc_scheduling scheduling_of(const made_plan *m)
{
    return slc_joint_scheduling(&m->request, m->strategies, NULL);
}

static void begin(made_plan *m, slc_random_options options, slc_strategy strategy)
{
    *m = (made_plan){0};
    assert_int_equal(slc_random_profile(&options, 1, &m->profile), SLUICE_OK);
    const slc_job *job = &m->profile->job;
    for (uint32_t u = 0; u < job->unit_count; u++) m->strategies[u] = slc_unit_strategy(job, &job->units[u], strategy);
    m->request = (slc_joint_request){.job = job, .times = &m->profile->times, .limit = UINT64_MAX};
}

static void end(made_plan *m)
{
    slc_plan_destroy(m->answer.plan);
    slc_profile_destroy(m->profile);
}

/* Asks the model for the free choice of sdp and fsdp: a bound for the whole request, and its answer. */
static void solve(const made_plan *m, bool free_choice, slc_slot_solution *solution)
{
    const slc_job *job = m->request.job;
    uint8_t allowed[MOST_UNITS];
    for (uint32_t u = 0; u < job->unit_count; u++)
        allowed[u] = (uint8_t)(free_choice ? 1 << SLC_SDP | 1 << SLC_FSDP : 1 << m->strategies[u]);
    const slc_slot_request ask = {.job = job, .times = m->request.times, .allowed = allowed, .limit = m->request.limit};
    assert_int_equal(slc_slot_model_solve(&ask, solution), SLUICE_OK);
    assert_true(solution->found);
}

/* Divides the distance of the plan in m->answer to the bound of a free choice. */
static void divide(made_plan *m)
{
    slc_slot_solution solution;
    assert_int_equal(slc_simulate(m->request.job, m->request.times, m->answer.plan, NULL, &m->answer.forecast),
                     SLUICE_OK);
    solve(m, true, &solution);
    m->answer.bound_s = solution.bound_s;
    m->answer.model_s = solution.step_s;
    slc_slot_solution_fini(&solution);
    assert_int_equal(slc_distance_find(&m->request, &m->answer, m->answer.bound_s, 60, &m->distance), SLUICE_OK);
    assert_true(m->distance.known);
}

/* Makes the plan of the model's answer with the choices made, cut in at most so many runs. */
static void plan_of_answer(made_plan *m, uint32_t most_runs, bool fuse)
{
    slc_slot_solution solution;
    slc_order order = {0};
    slc_scheduling in = scheduling_of(m);
    const slc_slot_order_options how = {.most_runs = most_runs, .fuse = fuse};
    solve(m, false, &solution);
    slc_order_from_slots(&in, &solution, &how, &order);
    assert_false(order.failed);
    assert_int_equal(slc_plan_from_order(&in, &order, &slc_scheduler_ilp, &m->answer.plan), SLUICE_OK);
    slc_order_fini(&order);
    slc_slot_solution_fini(&solution);
}

static void plan_of_scheduler(made_plan *m, const slc_scheduler *scheduler)
{
    slc_scheduling in = scheduling_of(m);
    assert_int_equal(slc_plan_make(&in, scheduler, &m->answer.plan), SLUICE_OK);
}

/* Gives every buffer memory of its own, and every item the waits that it has then. */
static void lay_apart(made_plan *m)
{
    slc_plan *plan = m->answer.plan;
    slc_program_forget_waits(&plan->train);
    assert_int_equal(slc_plan_pack(plan, &(slc_packing_effort){.limit = UINT64_MAX, .apart = true}), SLUICE_OK);
    assert_int_equal(slc_plan_add_waits(m->request.job, plan, false, false), SLUICE_OK);
}

static void check_sum(const slc_plan_distance *distance, double step_s, double bound_s)
{
    double sum_s = 0;
    for (int k = 0; k < SLC_DISTANCE_PARTS; k++) {
        assert_true(distance->part_s[k] >= 0);
        sum_s += distance->part_s[k];
    }
    assert_true(fabs(sum_s - fmax(step_s - bound_s, 0)) <= 1e-9 * step_s);
}

/* One part must be most of the distance, which must be at least `share` of the bound. */
static void check_named(const made_plan *m, slc_distance_part part, double share)
{
    const double bound_s = m->answer.bound_s, step_s = m->answer.forecast.step_s;
    check_sum(&m->distance, step_s, bound_s);
    if (step_s - bound_s < share * bound_s || m->distance.part_s[part] < (step_s - bound_s) / 2)
        for (int k = 0; k < SLC_DISTANCE_PARTS; k++)
            print_error("%s: %.3f %% of the bound\n", slc_distance_part_name(k), 100 * m->distance.part_s[k] / bound_s);
    assert_true(step_s - bound_s >= share * bound_s);
    assert_true(m->distance.part_s[part] >= (step_s - bound_s) / 2);
}

static void a_long_latency_is_named(void **state)
{
    (void)state;
    made_plan m;
    begin(&m, even_layers(2e-3, 16), SLC_SDP);
    m.profile->times.link.block_bytes = 1; /* every run is one base block */
    plan_of_answer(&m, MOST_UNITS, false);
    lay_apart(&m);
    divide(&m);
    check_named(&m, SLC_DISTANCE_LATENCY, 0.2);
    end(&m);
}

static void whole_blocks_are_named(void **state)
{
    (void)state;
    made_plan m;
    begin(&m, even_layers(0, 1), SLC_SDP);
    plan_of_answer(&m, 1, true);
    lay_apart(&m);
    divide(&m);
    check_named(&m, SLC_DISTANCE_BLOCKS, 0.02);
    end(&m);
}

static void an_order_without_overlap_is_named(void **state)
{
    (void)state;
    made_plan m;
    begin(&m, even_layers(0, 64), SLC_SDP);
    plan_of_scheduler(&m, &slc_scheduler_serial);
    divide(&m);
    check_named(&m, SLC_DISTANCE_ORDER, 0.2);
    end(&m);
}

static void thrifty_choices_are_named(void **state)
{
    (void)state;
    made_plan m;
    slc_random_options options = even_layers(0, 64);
    options.compute_ratio = (slc_random_range){0.4, 0.4};
    begin(&m, options, SLC_FSDP);
    plan_of_answer(&m, 16, true);
    lay_apart(&m);
    divide(&m);
    check_named(&m, SLC_DISTANCE_CHOICES, 0.1);
    end(&m);
}

/* A plan is packed as tightly as can be, so its gathers wait for memory; the same plan has none of that if every
 * buffer has memory of its own, and all other parts are equal. */
static void tight_packing_is_named(void **state)
{
    (void)state;
    made_plan m;
    begin(&m, even_layers(0, 64), SLC_FSDP);
    plan_of_scheduler(&m, &slc_scheduler_one_ahead);
    divide(&m);
    const slc_plan_distance tight = m.distance;
    const double tight_s = m.answer.forecast.step_s;
    check_sum(&tight, tight_s, m.answer.bound_s);
    lay_apart(&m);
    divide(&m);
    check_sum(&m.distance, m.answer.forecast.step_s, m.answer.bound_s);
    assert_true(m.answer.forecast.step_s < 0.99 * tight_s);
    for (int k = 0; k < SLC_DISTANCE_PACKING; k++)
        assert_true(fabs(m.distance.part_s[k] - tight.part_s[k]) < 1e-3 * tight_s);
    assert_true(m.distance.part_s[SLC_DISTANCE_PACKING] < 1e-3 * tight_s);
    assert_true(tight.part_s[SLC_DISTANCE_PACKING] > 0.01 * tight_s);
    end(&m);
}

static void parts_add_up(void **state)
{
    (void)state;
    const slc_random_options options = slc_random_defaults();
    for (uint64_t seed = 1; seed <= (test_brief() ? 2 : 8); seed++) {
        slc_profile *profile;
        slc_free_choices choices;
        slc_joint_answer answer;
        slc_plan_distance distance;
        uint64_t least, most;
        assert_int_equal(slc_random_profile(&options, seed, &profile), SLUICE_OK);
        assert_int_equal(slc_free_choices_init(&choices, &profile->job, true), SLUICE_OK);
        assert_int_equal(slc_simple_plan_range(profile, false, &least, &most), SLUICE_OK);
        const slc_joint_request request = {.job = &profile->job,
                                           .times = &profile->times,
                                           .strategies = choices.strategies,
                                           .recompute = choices.recompute,
                                           .limit = least + (most - least) / 8 * seed,
                                           .effort_s = 0.2};
        assert_int_equal(slc_joint_plan(&request, &answer, NULL), SLUICE_OK);
        assert_int_equal(slc_distance_find(&request, &answer, answer.bound_s, 60, &distance), SLUICE_OK);
        assert_true(distance.known);
        check_sum(&distance, answer.forecast.step_s, answer.bound_s);
        slc_plan_destroy(answer.plan);
        slc_free_choices_fini(&choices);
        slc_profile_destroy(profile);
    }
}

static void no_bound_no_parts(void **state)
{
    (void)state;
    made_plan m;
    begin(&m, even_layers(0, 4), SLC_SDP);
    plan_of_scheduler(&m, &slc_scheduler_serial);
    assert_int_equal(slc_distance_find(&m.request, &m.answer, 0, 60, &m.distance), SLUICE_OK);
    assert_false(m.distance.known);
    end(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_long_latency_is_named),
        cmocka_unit_test(whole_blocks_are_named),
        cmocka_unit_test(an_order_without_overlap_is_named),
        cmocka_unit_test(thrifty_choices_are_named),
        cmocka_unit_test(tight_packing_is_named),
        cmocka_unit_test(parts_add_up),
        cmocka_unit_test(no_bound_no_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
