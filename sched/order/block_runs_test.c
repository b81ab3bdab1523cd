/* Random legal orders of runs of blocks, some of them late: their plans must be valid, do no harm when two lanes run
 * them at random speeds, and never need more memory than the packer says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "tests/support/sched/drawn_plan.h"
#include "tests/support/sched/two_lanes.h"

enum { JOBS = 300, RUNS = 4 };

typedef struct {
    uint32_t cut, late, wrapped, recomputing, computed; /* plans that had at least one */
} coverage;

static void cover(const slc_job *job, const slc_plan *plan, coverage *seen)
{
    bool cut = false, late = false, wrapped = false, recomputing = false, computed = false;
    for (uint32_t i = 0; i < plan->train.item_count; i++) {
        const slc_item *item = &plan->train.items[i];
        late |= item->late;
        computed |= item->on_compute && item->late;
        cut |= item->unit != SLC_NONE && item->block_count < slc_unit_blocks(&job->units[item->unit]);
    }
    for (uint32_t c = 0; c < plan->train.claim_count; c++)
        wrapped |= slc_claim_wraps(&plan->train, &plan->train.claims[c]);
    for (uint32_t l = 0; l < job->layer_count; l++) recomputing |= plan->recompute[l];
    seen->cut += cut;
    seen->late += late;
    seen->wrapped += wrapped;
    seen->recomputing += recomputing;
    seen->computed += computed;
}

static void check_peak(const slc_plan *plan, const two_lanes *lanes)
{
    const slc_buffer *staging = &plan->buffers[slc_plan_buffer(plan, SLC_BUFFER_STAGING, SLC_NONE, 0)];
    uint64_t between = staging->offset + staging->bytes;
    assert_int_equal(lanes->peak > between ? lanes->peak : between, plan->arena_bytes);
}

static void check_random_order(uint64_t seed, two_lanes *lanes, coverage *seen)
{
    static test_job t;
    test_dice dice = {.seed = seed};
    test_job_draw(&t, &dice);
    slc_plan *plan = legal_plan_draw(&t, &dice);
    assert_int_equal(slc_plan_validate(&t.job, plan), SLUICE_OK);
    assert_true(plan->lower_bound <= plan->arena_bytes);
    cover(&t.job, plan, seen);
    for (uint64_t run = 0; run < RUNS; run++) {
        two_lanes_run(lanes, &t.job, plan, seed * RUNS + run);
        if (lanes->error[0])
            fail_msg("job %llu, run %llu: %s", (unsigned long long)seed, (unsigned long long)run, lanes->error);
        check_peak(plan, lanes);
    }
    slc_plan_destroy(plan);
}

static void random_orders_run_at_any_speed(void **state)
{
    (void)state;
    two_lanes *lanes = malloc(sizeof *lanes);
    assert_non_null(lanes);
    coverage seen = {0};
    for (uint64_t seed = 0; seed < JOBS; seed++) check_random_order(seed, lanes, &seen);
    free(lanes);
    print_message(
        "of %d plans %u cut units, %u are late, %u have claims that wrap, %u recompute, %u update late on the "
        "compute lane\n",
        JOBS, seen.cut, seen.late, seen.wrapped, seen.recomputing, seen.computed);
    assert_true(seen.cut > JOBS / 2 && seen.late > JOBS / 2 && seen.wrapped > JOBS / 10);
    assert_true(seen.recomputing > JOBS / 10 && seen.computed > JOBS / 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_orders_run_at_any_speed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
