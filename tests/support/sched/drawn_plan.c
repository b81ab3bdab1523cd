#include "tests/support/sched/drawn_plan.h"

#include "lib/base/status.h"
#include "sched/layout/make_plan.h"
#include "tests/support/sched/legal_order.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static double drawn_between(test_dice *dice, double least, double most)
{
    return least + (most - least) * test_below(dice, 1000000) / 1e6;
}

static void drawn_times_init(drawn_plan *d, test_dice *dice)
{
    assert_int_equal(slc_times_estimate(&d->t.job, &d->times), SLUICE_OK);
    for (uint32_t s = 0; s < slc_job_slots(&d->t.job); s++) d->times.slot_s[s] = drawn_between(dice, 0, 1e-3);
    slc_link *link = &d->times.link;
    link->reduce_scatter = (slc_link_line){drawn_between(dice, 0, 1e-5), drawn_between(dice, 1e6, 1e8)};
    link->all_gather = (slc_link_line){drawn_between(dice, 0, 1e-5), drawn_between(dice, 1e6, 1e8)};
    link->sigma = drawn_between(dice, 1, 3);
    link->kappa = drawn_between(dice, 0, 1);
    link->thread_moves = test_below(dice, 2);
    link->operation_s = drawn_between(dice, 0, 1e-5);
    d->times.update_s_per_element = drawn_between(dice, 0, 1e-7);
    d->times.update_compute_s_per_element = test_beside(dice, 900, 3) * d->times.update_s_per_element / 2;
    for (uint32_t l = 0; l < d->t.job.layer_count; l++) d->times.recompute_s[l] = drawn_between(dice, 0, 1e-3);
    d->times.compress_s_per_element = drawn_between(dice, 0, 1e-7);
    d->times.apply_s_per_element = drawn_between(dice, 0, 1e-7);
    d->times.average_s_per_element = drawn_between(dice, 0, 1e-7);
}

void drawn_plan_init(drawn_plan *d, uint64_t seed)
{
    test_dice dice = {.seed = seed};
    slc_order order = {0};
    test_job_draw(&d->t, &dice);
    test_strategies_draw(&d->t.job, &dice, d->strategies);
    test_recompute_draw(&d->t.job, &dice, d->recompute);
    drawn_times_init(d, &dice);
    const slc_scheduling in = {.job = &d->t.job,
                               .strategies = d->strategies,
                               .recompute = d->recompute,
                               .times = &d->times,
                               .limit = UINT64_MAX};
    sluice_status status;
    if (seed % 3 == 2) {
        assert_true(test_order_draw(&d->t.job, d->strategies, &dice, &order));
        status = slc_plan_from_order(&in, &order, &slc_scheduler_one_ahead, &d->plan);
        slc_order_fini(&order);
    } else
        status = slc_plan_make(&in, seed % 3 ? &slc_scheduler_serial : &slc_scheduler_one_ahead, &d->plan);
    if (status) fail_msg("job %llu: %s", (unsigned long long)seed, sluice_last_error());
}

void drawn_plan_fini(drawn_plan *d)
{
    slc_times_fini(&d->times);
    slc_plan_destroy(d->plan);
}

slc_plan *legal_plan_draw(test_job *t, test_dice *dice)
{
    slc_strategy strategies[TEST_UNITS];
    bool recompute[TEST_LAYERS];
    slc_order order = {0};
    slc_plan *plan = NULL;
    test_strategies_draw(&t->job, dice, strategies);
    test_recompute_draw(&t->job, dice, recompute);
    assert_true(test_order_draw(&t->job, strategies, dice, &order));
    const slc_scheduling in = {
        .job = &t->job, .strategies = strategies, .recompute = recompute, .limit = UINT64_MAX, .seed = dice->seed};
    if (slc_plan_from_order(&in, &order, &slc_scheduler_one_ahead, &plan))
        fail_msg("job %llu: %s", (unsigned long long)dice->seed, sluice_last_error());
    slc_order_fini(&order);
    return plan;
}

void drawn_plans_look(uint64_t count, void (*look)(drawn_plan *))
{
    static drawn_plan d;
    for (uint64_t seed = 0; seed < count; seed++) {
        drawn_plan_init(&d, seed);
        look(&d);
        drawn_plan_fini(&d);
    }
}
