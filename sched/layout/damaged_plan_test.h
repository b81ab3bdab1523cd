/* Plans for tests of the validator to damage: some made of runs of blocks, with late items, updates on the compute lane
 * and recomputation, others of whole units. */
#ifndef SLC_DAMAGED_PLAN_TEST_H
#define SLC_DAMAGED_PLAN_TEST_H

#include "sched/order/random_order_test.h"
#include "sched/layout/make_plan.h"

/* In half of the orders, puts half of the updates on the compute lane. */
TEST_INLINE void draw_lanes(const slc_strategy *strategies, const test_dice *dice, slc_order *order)
{
    for (uint32_t i = 0; test_beside(dice, 200, 2) && i < order->count; i++)
        if (order->items[i].kind == SLC_ITEM_UPDATE && strategies[order->items[i].unit] != SLC_ONEBIT)
            order->items[i].on_compute = test_beside(dice, 201 + i, 2);
}

/* Draws a plan; one in four has whole units, as a scheduler orders them. */
TEST_INLINE slc_plan *draw_plan(test_job *t, test_dice *dice)
{
    slc_strategy strategies[TEST_UNITS];
    bool recompute[TEST_LAYERS];
    slc_order order = {0};
    slc_plan *plan;
    test_job_draw(t, dice);
    test_strategies_draw(&t->job, dice, strategies);
    test_recompute_draw(&t->job, dice, recompute);
    const slc_scheduling in = {.job = &t->job, .strategies = strategies, .recompute = recompute, .limit = UINT64_MAX};
    if (test_below(dice, 4) == 0) {
        assert_int_equal(slc_plan_make(&in, slc_scheduler_at(dice->seed % 2), &plan), SLUICE_OK);
    } else {
        assert_true(test_order_draw(&t->job, strategies, dice, &order));
        draw_lanes(strategies, dice, &order);
        assert_int_equal(slc_plan_from_order(&in, &order, &slc_scheduler_serial, &plan), SLUICE_OK);
        slc_order_fini(&order);
    }
    return plan;
}

TEST_INLINE slc_plan *some_plan(test_job *t, uint64_t seed)
{
    test_dice dice = {.seed = seed};
    return draw_plan(t, &dice);
}

/* Repeats an operation right after itself. */
TEST_INLINE void insert_twin(slc_plan *plan, uint32_t twin)
{
    slc_program *train = &plan->train;
    slc_item *grown = realloc(train->items, (train->item_count + 1) * sizeof *grown);
    assert_non_null(grown);
    slc_after *after = malloc((grown[twin].after_count + 1) * sizeof *after);
    assert_non_null(after);
    train->items = grown;
    memmove(&grown[twin + 1], &grown[twin], (train->item_count - twin) * sizeof *grown);
    train->item_count++;
    memcpy(after, grown[twin].after, grown[twin].after_count * sizeof *after);
    grown[twin + 1].after = after;
    for (uint32_t i = 0; i < train->item_count; i++)
        for (uint32_t a = 0; a < grown[i].after_count; a++) grown[i].after[a].item += grown[i].after[a].item > twin;
    for (uint32_t c = 0; c < train->claim_count; c++) {
        train->claims[c].from += train->claims[c].from > twin;
        train->claims[c].to += train->claims[c].to >= twin;
    }
}

#endif
