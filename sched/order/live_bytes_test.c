/* The live bytes that are summed while an order is read must be those of its plan's claims, with onebit's buffers
 * between operations, also late ones. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "sched/order/live_bytes.h"
#include "tests/support/sched/legal_order.h"
#include "sched/layout/make_plan.h"

enum { JOBS = 300 };

static uint64_t claimed(const slc_plan *plan, uint32_t item)
{
    uint64_t bytes = 0;
    for (uint32_t s = 0; s < plan->static_count; s++) bytes += plan->buffers[plan->statics[s].buffer].bytes;
    for (uint32_t c = 0; c < plan->train.claim_count; c++) {
        const slc_claim *claim = &plan->train.claims[c];
        if (slc_claim_alive(&plan->train, claim, item)) bytes += claim->end_byte - claim->first_byte;
    }
    return bytes;
}

/* At a slot there must be room for exactly as many bytes as are claimed. */
static void look_at_slot(slc_live_bytes *live, slc_scheduling *in, const slc_plan *plan, uint32_t item)
{
    const slc_item *slot = &plan->train.items[item];
    in->limit = claimed(plan, item);
    assert_true(slc_live_bytes_fit(live, NULL, slot->micro_batch, slot->slot));
    in->limit--;
    assert_false(slc_live_bytes_fit(live, NULL, slot->micro_batch, slot->slot));
    slc_live_bytes_slot(live, slot->micro_batch, slot->slot);
}

static uint32_t look_at_order(slc_scheduling *in, const slc_plan *plan)
{
    const slc_program *program = &plan->train;
    slc_live_bytes live;
    uint32_t late = 0;
    assert_true(slc_live_bytes_init(&live, in));
    for (uint32_t i = 0; i < program->item_count; i++)
        if (program->items[i].late) {
            late += program->items[i].kind == SLC_ITEM_EXCHANGE;
            slc_live_bytes_late(&live, &program->items[i]);
        }
    for (uint32_t i = 0; i < program->item_count; i++) {
        if (program->items[i].kind == SLC_ITEM_SLOT)
            look_at_slot(&live, in, plan, i);
        else if (program->items[i].unit != SLC_NONE)
            slc_live_bytes_pass(&live, &program->items[i]);
    }
    slc_live_bytes_fini(&live);
    return late;
}

static void sums_are_those_of_the_claims(void **state)
{
    (void)state;
    uint32_t late = 0;
    for (uint64_t seed = 0; seed < JOBS; seed++) {
        static test_job t;
        test_dice dice = {.seed = seed};
        slc_strategy strategies[TEST_UNITS];
        slc_order order = {0};
        slc_plan *plan;
        test_job_draw(&t, &dice);
        if (!t.job.compressed) continue;
        test_strategies_all(&t.job, SLC_ONEBIT, strategies);
        slc_scheduling in = {.job = &t.job, .strategies = strategies, .limit = UINT64_MAX};
        assert_true(test_order_draw(&t.job, strategies, &dice, &order));
        assert_int_equal(slc_plan_from_order(&in, &order, &slc_scheduler_one_ahead, &plan), SLUICE_OK);
        late += look_at_order(&in, plan);
        slc_plan_destroy(plan);
        slc_order_fini(&order);
    }
    assert_true(late > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(sums_are_those_of_the_claims)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
