/* Plans of random jobs under random times, serial and one_ahead by turns: for tests of what looks at finished plans. */
#ifndef SLC_DRAWN_PLAN_TEST_H
#define SLC_DRAWN_PLAN_TEST_H

#include "lib/base/status.h"
#include "sched/random_job_test.h"
#include "sched/scheduler.h"

typedef struct {
    test_job t;
    slc_strategy strategies[TEST_UNITS];
    slc_times times;
    slc_plan *plan;
} drawn_plan;

TEST_INLINE double test_between(test_dice *dice, double least, double most)
{
    return least + (most - least) * test_below(dice, 1000000) / 1e6;
}

TEST_INLINE void drawn_plan_init(drawn_plan *d, uint64_t seed, const slc_scheduler *scheduler)
{
    test_dice dice = {.seed = seed};
    test_job_draw(&d->t, &dice);
    test_strategies_draw(&d->t.job, &dice, d->strategies);
    assert_int_equal(slc_times_estimate(&d->t.job, &d->times), SLUICE_OK);
    for (uint32_t s = 0; s < slc_job_slots(&d->t.job); s++) d->times.slot_s[s] = test_between(&dice, 0, 1e-3);
    slc_link *link = &d->times.link;
    link->reduce_scatter = (slc_link_line){test_between(&dice, 0, 1e-5), test_between(&dice, 1e6, 1e8)};
    link->all_gather = (slc_link_line){test_between(&dice, 0, 1e-5), test_between(&dice, 1e6, 1e8)};
    link->sigma = test_between(&dice, 1, 3);
    link->kappa = test_between(&dice, 0, 1);
    link->thread_moves = test_below(&dice, 2);
    link->operation_s = test_between(&dice, 0, 1e-5);
    d->times.update_s_per_element = test_between(&dice, 0, 1e-7);
    if (slc_plan_make(&(slc_scheduling){.job = &d->t.job, .strategies = d->strategies, .limit = UINT64_MAX}, scheduler,
                      &d->plan))
        fail_msg("job %llu: %s", (unsigned long long)seed, sluice_last_error());
}

TEST_INLINE void drawn_plan_fini(drawn_plan *d)
{
    slc_times_fini(&d->times);
    slc_plan_destroy(d->plan);
}

TEST_INLINE void drawn_plans_look(uint64_t count, void (*look)(drawn_plan *))
{
    static drawn_plan d;
    for (uint64_t seed = 0; seed < count; seed++) {
        drawn_plan_init(&d, seed, seed % 2 ? &slc_scheduler_serial : &slc_scheduler_one_ahead);
        look(&d);
        drawn_plan_fini(&d);
    }
}

#endif
