#include "tests/support/sched/damaged_plan.h"

#include "sched/layout/make_plan.h"
#include "tests/support/sched/legal_order.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* Puts, in half of the orders, half of the updates on the compute lane. */
static void draw_lanes(const slc_strategy *strategies, const test_dice *dice, slc_order *order)
{
    for (uint32_t i = 0; test_beside(dice, 200, 2) && i < order->count; i++)
        if (order->items[i].kind == SLC_ITEM_UPDATE && strategies[order->items[i].unit] != SLC_ONEBIT)
            order->items[i].on_compute = test_beside(dice, 201 + i, 2);
}

slc_plan *plan_to_damage(test_job *t, test_dice *dice)
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

slc_plan *plan_to_damage_of(test_job *t, uint64_t seed)
{
    test_dice dice = {.seed = seed};
    return plan_to_damage(t, &dice);
}

void insert_twin(slc_plan *plan, uint32_t twin)
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
