/* Every order that slc_plan_try accepts must give a plan that the validator accepts. Orders are drawn legal, then
 * changed as a search changes them: items move, also over the step's border, without regard to dependencies. */
#include "lib/base/status.h"
#include "tests/support/plan/random_job.h"
#include "sched/layout/make_plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { JOBS = 300, CHANGES = 20 };

static void change(slc_order *order, test_dice *dice)
{
    uint32_t item = test_below(dice, order->count);
    slc_item *moved = &order->items[item];
    if (moved->kind == SLC_ITEM_SLOT) return;
    if (moved->kind != SLC_ITEM_GATHER_WINDOW && test_below(dice, 2)) moved->late = !moved->late;
    uint32_t reach = test_below(dice, 2) ? order->count : 4, low = item > reach ? item - reach : 0;
    uint32_t high = item + reach < order->count ? item + reach : order->count - 1;
    slc_order_shift(order, item, low + test_below(dice, high - low + 1));
}

static void what_is_tried_is_valid(void **state)
{
    (void)state;
    uint32_t taken = 0, refused = 0;
    for (uint64_t seed = 1; seed <= JOBS; seed++) {
        test_job t;
        test_dice dice = {.seed = seed};
        slc_strategy strategies[TEST_UNITS];
        test_job_draw(&t, &dice);
        for (uint32_t u = 0; u < t.job.unit_count; u++)
            strategies[u] =
                slc_unit_strategy(&t.job, &t.units[u], (slc_strategy)test_below(&dice, SLC_EXACT_STRATEGIES));
        slc_scheduling in = {.job = &t.job, .strategies = strategies, .limit = UINT64_MAX, .seed = seed};
        slc_order order = {0};
        slc_scheduler_random.train(&in, &order);
        for (int k = 0; k < CHANGES; k++) {
            slc_plan *plan;
            uint64_t arena;
            if (k) change(&order, &dice);
            assert_int_equal(slc_plan_try(&in, &order, &slc_scheduler_random, &(slc_trying){0}, &plan, &arena, NULL),
                             SLUICE_OK);
            if (plan && slc_plan_validate(&t.job, plan))
                fail_msg("seed %llu, change %d: %s", (unsigned long long)seed, k, sluice_last_error());
            if (!k) assert_non_null(plan);
            taken += !!plan;
            refused += !plan;
            slc_plan_destroy(plan);
            if (!plan) break;
        }
        slc_order_fini(&order);
    }
    assert_true(taken > JOBS && refused > JOBS / 4); /* both must happen */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_tried_is_valid)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
