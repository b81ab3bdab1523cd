/* Choosing the lane of updates: for plans of random jobs the result must be valid, do no harm when two lanes run it at
 * random speeds, stay within the limit, never be slower, and not be below the slot model's bound. If the compute
 * threads are plainly better, all updates must move there; if they are plainly worse, none. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "ilp/slot_model.h"
#include "tests/support/sched/drawn_plan.h"
#include "sched/joint/joint.h"
#include "tests/support/sched/two_lanes.h"
#include "sched/search/update_lane.h"
#include "sched/layout/make_plan.h"

#include <math.h>
#include <stdlib.h>

enum { JOBS = 150, RUNS = 2, BOUNDS = 44 };

typedef struct {
    uint32_t updates, computed, late;
} lane_count;

static lane_count count_lanes(const drawn_plan *d, const slc_plan *plan)
{
    lane_count count = {0};
    for (uint32_t i = 0; i < plan->train.item_count; i++) {
        const slc_item *item = &plan->train.items[i];
        if (item->kind != SLC_ITEM_UPDATE || d->strategies[item->unit] == SLC_ONEBIT) continue;
        count.updates++;
        count.computed += item->on_compute;
        count.late += item->on_compute && item->late;
    }
    return count;
}

static slc_scheduling scheduling_of(const drawn_plan *d, uint64_t limit)
{
    return (slc_scheduling){
        .job = &d->t.job, .strategies = d->strategies, .recompute = d->recompute, .times = &d->times, .limit = limit};
}

static const slc_scheduler *scheduler_of(const slc_plan *plan)
{
    return slc_scheduler_find(plan->schedule);
}

static slc_forecast place(drawn_plan *d, slc_updates updates, uint64_t limit)
{
    slc_scheduling in = scheduling_of(d, limit);
    slc_forecast f;
    assert_int_equal(slc_simulate(&d->t.job, &d->times, d->plan, NULL, &f), SLUICE_OK);
    if (slc_updates_place(&in, scheduler_of(d->plan), updates, 0, &d->plan, &f)) fail_msg("%s", sluice_last_error());
    return f;
}

static void run_at_any_speed(const drawn_plan *d, two_lanes *lanes, uint64_t seed)
{
    assert_int_equal(slc_plan_validate(&d->t.job, d->plan), SLUICE_OK);
    for (uint64_t run = 0; run < RUNS; run++) {
        two_lanes_run(lanes, &d->t.job, d->plan, seed * RUNS + run);
        if (lanes->error[0]) fail_msg("job %llu: %s", (unsigned long long)seed, lanes->error);
    }
}

static void what_is_chosen_is_sound(void **state)
{
    (void)state;
    static drawn_plan d;
    uint32_t faster = 0, late = 0;
    two_lanes *lanes = malloc(sizeof *lanes);
    assert_non_null(lanes);
    for (uint64_t seed = 0; seed < JOBS; seed++) {
        drawn_plan_init(&d, seed);
        slc_forecast before, again;
        assert_int_equal(slc_simulate(&d.t.job, &d.times, d.plan, NULL, &before), SLUICE_OK);
        uint64_t limit = d.plan->arena_bytes + (seed % 2 ? 1 << 20 : 0);
        slc_updates updates = seed % 4 == 3 ? SLC_UPDATES_COMPUTE : SLC_UPDATES_AUTO;
        lane_count had = count_lanes(&d, d.plan);
        slc_forecast after = place(&d, updates, limit);
        lane_count count = count_lanes(&d, d.plan);
        assert_true(d.plan->arena_bytes <= limit);
        assert_int_equal(slc_simulate(&d.t.job, &d.times, d.plan, NULL, &again), SLUICE_OK);
        assert_true(again.step_s == after.step_s);
        if (updates == SLC_UPDATES_AUTO) assert_true(after.step_s <= before.step_s);
        if (updates == SLC_UPDATES_COMPUTE) assert_int_equal(count.computed, count.updates);
        if (updates == SLC_UPDATES_AUTO && !(d.times.update_compute_s_per_element > 0))
            assert_int_equal(count.computed, had.computed);
        faster += updates == SLC_UPDATES_AUTO && after.step_s < before.step_s;
        late += count.late > 0;
        run_at_any_speed(&d, lanes, seed);
        drawn_plan_fini(&d);
    }
    free(lanes);
    print_message("of %d plans %u became faster, %u update late on the compute lane\n", JOBS, faster, late);
    assert_true(faster > JOBS / 10 && late > JOBS / 10);
}

/* Each lane must update about half of the elements: the difference may be at most the largest unit. */
static void both_lanes_are_measured(void **state)
{
    (void)state;
    static drawn_plan d;
    uint32_t shared = 0;
    for (uint64_t seed = 0; seed < JOBS; seed++) {
        drawn_plan_init(&d, seed);
        uint64_t elements[2] = {0}, largest = 0, arena = d.plan->arena_bytes;
        place(&d, SLC_UPDATES_BOTH, UINT64_MAX);
        assert_int_equal(d.plan->arena_bytes, arena);
        for (uint32_t i = 0; i < d.plan->train.item_count; i++) {
            const slc_item *item = &d.plan->train.items[i];
            if (item->kind != SLC_ITEM_UPDATE || d.strategies[item->unit] == SLC_ONEBIT) continue;
            const slc_unit *unit = &d.t.job.units[item->unit];
            elements[item->on_compute] += slc_run_elements(unit, item->first_block, item->block_count);
            if (unit->elements > largest) largest = unit->elements;
        }
        if (!d.t.job.compressed) {
            assert_true(elements[1] <= elements[0] + largest && elements[0] <= elements[1] + largest);
            shared += elements[0] && elements[1];
        }
        drawn_plan_fini(&d);
    }
    assert_true(shared > JOBS / 4);
}

/* One rank, whose compute stops while its communication thread updates: four compute threads save three quarters of
 * that time. If they are slower than the one thread, hardly anything may move, and only what makes the step faster: an
 * update while the compute lane waits for another one of the thread's. */
static void the_cheaper_lane_is_taken(void **state)
{
    (void)state;
    static drawn_plan d;
    uint32_t looked = 0, updates = 0, slower = 0;
    for (uint64_t seed = 0; seed < JOBS; seed++) {
        drawn_plan_init(&d, seed);
        d.times.link.kappa = d.times.link.sigma = 1;
        d.times.update_s_per_element = 1e-6;
        for (int worse = 0; worse < 2 && !d.t.job.compressed && d.t.job.world == 1; worse++) {
            slc_scheduling in = scheduling_of(&d, UINT64_MAX);
            slc_plan_destroy(d.plan);
            assert_int_equal(slc_plan_make(&in, &slc_scheduler_one_ahead, &d.plan), SLUICE_OK);
            d.times.update_compute_s_per_element = worse ? 1.1e-6 : 0.25e-6;
            slc_forecast before;
            assert_int_equal(slc_simulate(&d.t.job, &d.times, d.plan, NULL, &before), SLUICE_OK);
            slc_forecast after = place(&d, SLC_UPDATES_AUTO, UINT64_MAX);
            lane_count count = count_lanes(&d, d.plan);
            if (worse)
                assert_true(!count.computed || after.step_s < before.step_s);
            else
                assert_int_equal(count.computed, count.updates);
            if (worse) updates += count.updates, slower += count.computed;
            looked += count.updates > 0;
        }
        drawn_plan_fini(&d);
    }
    assert_true(looked > JOBS / 10);
    assert_true(slower * 20 < updates);
}

/* No plan of the joint search may be faster than the slot model's bound. */
static void the_bound_holds(void **state)
{
    (void)state;
    if (!slc_slot_model_solver()) {
        print_message("SKIP: built without GLPK\n");
        skip();
    }
    static drawn_plan d;
    uint8_t recompute[TEST_LAYERS], allowed[TEST_UNITS];
    uint32_t computed = 0;
    for (uint64_t seed = 0; seed < BOUNDS; seed++) {
        drawn_plan_init(&d, seed);
        slc_link *link = &d.times.link;
        link->thread_moves = true;
        if (seed % 3 == 0) link->sigma = 1, link->kappa = seed % 2 * 0.3;
        d.times.update_s_per_element = 2e-7;
        d.times.update_compute_s_per_element = 2e-7 / (double)(1 + seed % 4);
        for (uint32_t l = 0; l < d.t.job.layer_count; l++) recompute[l] = d.recompute[l];
        for (uint32_t u = 0; u < d.t.job.unit_count; u++) allowed[u] = (uint8_t)(1 << d.strategies[u]);
        slc_joint_request ask = {.job = &d.t.job,
                                 .times = &d.times,
                                 .strategies = d.strategies,
                                 .recompute = recompute,
                                 .limit = UINT64_MAX,
                                 .tries = 50};
        slc_slot_request model = {.job = &d.t.job,
                                  .times = &d.times,
                                  .allowed = allowed,
                                  .recompute = recompute,
                                  .limit = UINT64_MAX,
                                  .gap = 0.003};
        slc_joint_answer answer;
        double relaxed_s, bound_s;
        assert_int_equal(slc_joint_plan(&ask, &answer, NULL), SLUICE_OK);
        assert_int_equal(slc_slot_model_bound(&model, &relaxed_s, &bound_s), SLUICE_OK);
        assert_true(bound_s <= answer.forecast.step_s * (1 + 1e-6));
        assert_true(answer.bound_s <= answer.forecast.step_s * (1 + 1e-6));
        computed += count_lanes(&d, answer.plan).computed > 0;
        slc_plan_destroy(answer.plan);
        drawn_plan_fini(&d);
    }
    assert_true(computed > BOUNDS / 4);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_chosen_is_sound),
        cmocka_unit_test(both_lanes_are_measured),
        cmocka_unit_test(the_cheaper_lane_is_taken),
        cmocka_unit_test(the_bound_holds),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
