/* Every scheduler on random jobs, with random times, limits, seeds and recomputation: its plans must be valid, run at
 * any speed, and come out the same when made again. The purpose of each scheduler must show where it has to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "ilp/slot_model.h"
#include "sched/layout/make_plan.h"
#include "sched/simulate/simulate.h"
#include "tests/support/sched/two_lanes.h"
#include "lib/plan/exchange_sizes.h"

enum { JOBS = 120, RUNS = 2 };

/* Draws a time from nothing at all to far more than the others. */
static double draw_seconds(test_dice *dice)
{
    static const double scales[] = {0, 1e-6, 1e-4, 1e-3, 1e-2};
    return scales[test_below(dice, 5)] * (1 + test_below(dice, 8));
}

typedef struct {
    test_job t;
    slc_strategy strategies[TEST_UNITS];
    bool can_recompute[TEST_LAYERS], recompute[TEST_LAYERS];
    double slot_s[2 * TEST_LAYERS], recompute_s[TEST_LAYERS];
    slc_times times;
    slc_scheduling in;
} drawn;

static void draw_all(drawn *d, uint64_t seed)
{
    test_dice dice = {.seed = seed};
    test_job_draw(&d->t, &dice);
    slc_job *job = &d->t.job;
    test_strategies_draw(job, &dice, d->strategies);
    job->can_recompute = d->can_recompute;
    for (uint32_t l = 0; l < job->layer_count; l++) {
        d->can_recompute[l] = test_below(&dice, 2);
        d->recompute[l] = d->can_recompute[l] && test_below(&dice, 2);
        d->recompute_s[l] = draw_seconds(&dice);
        d->slot_s[l] = draw_seconds(&dice);
        d->slot_s[slc_backward_slot(job, l)] = draw_seconds(&dice);
    }
    for (uint32_t a = 0; a < job->activation_count; a++) {
        slc_activation_life *life = &job->activations[a];
        uint32_t layer = slc_slot_layer(job, life->first_slot);
        life->recomputable = slc_slot_is_forward(job, life->first_slot) && d->can_recompute[layer] &&
                             life->last_slot == slc_backward_slot(job, layer);
    }
    for (uint32_t u = 0; u < job->unit_count;
         u++) /* a forward reads the values, and it may run in the backward slot too */
        for (uint32_t i = 0; i < job->units[u].use_count; i++)
            job->units[u].uses[i].backward_value |= d->can_recompute[job->units[u].uses[i].layer];
    slc_link_line line = {draw_seconds(&dice), 1e3 * (1 << test_below(&dice, 20))};
    d->times = (slc_times){.slot_s = d->slot_s,
                           .recompute_s = d->recompute_s,
                           .update_s_per_element = draw_seconds(&dice) / 1000,
                           .link = {.reduce_scatter = line,
                                    .all_gather = line,
                                    .kappa = 0.5,
                                    .sigma = 1.2,
                                    .thread_moves = test_below(&dice, 2),
                                    .block_bytes = UINT64_C(1) << test_below(&dice, 16),
                                    .operation_s = draw_seconds(&dice)}};
    d->in = (slc_scheduling){.job = job,
                             .strategies = d->strategies,
                             .recompute = test_below(&dice, 3) ? d->recompute : NULL,
                             .times = test_below(&dice, 4) ? &d->times : NULL,
                             .limit = test_below(&dice, 2) ? UINT64_MAX : 1000 * (1 + test_below(&dice, 4000)),
                             .seed = seed};
}

static void plans_run_at_any_speed(void **state)
{
    (void)state;
    static drawn d;
    two_lanes *lanes = malloc(sizeof *lanes);
    assert_non_null(lanes);
    for (uint64_t seed = 0; seed < JOBS; seed++) {
        draw_all(&d, seed);
        const slc_scheduler *scheduler;
        for (size_t s = 0; (scheduler = slc_scheduler_at(s)); s++) {
            slc_plan *plan;
            if (slc_plan_make(&d.in, scheduler, &plan))
                fail_msg("job %llu, %s: %s", (unsigned long long)seed, scheduler->name, sluice_last_error());
            for (uint64_t run = 0; run < RUNS; run++) {
                two_lanes_run(lanes, &d.t.job, plan, seed * RUNS + run);
                if (lanes->error[0])
                    fail_msg("job %llu, %s, run %llu: %s", (unsigned long long)seed, scheduler->name,
                             (unsigned long long)run, lanes->error);
                assert_true(lanes->peak <= plan->arena_bytes);
            }
            slc_plan_destroy(plan);
        }
    }
    free(lanes);
}

/* Makes the job one whose last slots add to no gradient, while some of its units exchange only after the agreement. */
static void freeze_first_layers(drawn *d)
{
    slc_job *job = &d->t.job;
    job->each = job->norms_barrier = false;
    job->compressed = job->barrier = true;
    for (uint32_t u = 0; u < job->unit_count; u++) {
        slc_unit *unit = &d->t.units[u];
        unit->trainable &= unit->uses[0].layer >= (job->layer_count + 1) / 2 && unit->role == SLC_UNIT_WHOLE;
        if (unit->trainable) unit->exchange = slc_exchange_of(&unit->elements, 1, job->world, job->scratch_bytes > 0);
        d->strategies[u] = slc_unit_strategy(job, unit, u % 2 ? SLC_ONEBIT : SLC_SDP);
    }
}

/* The slots of frozen layers hide transfers, after all gradients are complete: reductions as well as what waits for the
 * agreement, which has to hear of all of them first. */
static void nothing_precedes_the_agreement_that_it_needs(void **state)
{
    (void)state;
    static drawn d;
    for (uint64_t seed = 0; seed < JOBS; seed++) {
        draw_all(&d, seed);
        if (d.t.job.world == 1) continue;
        freeze_first_layers(&d);
        slc_plan *plan;
        if (slc_plan_make(&d.in, &slc_scheduler_ilp, &plan))
            fail_msg("job %llu: %s", (unsigned long long)seed, sluice_last_error());
        slc_plan_destroy(plan);
    }
}

static void names_are_those_of_the_schedulers(void **state)
{
    (void)state;
    const slc_scheduler *scheduler;
    size_t length = 0, s;
    for (s = 0; (scheduler = slc_scheduler_at(s)); s++) {
        const bool offered = scheduler != &slc_scheduler_ilp || slc_slot_model_solver();
        assert_ptr_equal(slc_scheduler_find(scheduler->name), scheduler);
        assert_int_equal(strstr(slc_scheduler_names(), scheduler->name) != NULL, offered);
        if (offered) length += strlen(scheduler->name) + strlen(", ");
    }
    assert_int_equal(strlen(slc_scheduler_names()), length + strlen("portfolio"));
    assert_ptr_equal(slc_scheduler_find("portfolio"), &slc_scheduler_portfolio);
    assert_null(slc_scheduler_find("no such"));
}

static uint64_t fingerprint(const slc_scheduling *in, const slc_scheduler *scheduler)
{
    slc_plan *plan;
    assert_int_equal(slc_plan_make(in, scheduler, &plan), SLUICE_OK);
    uint64_t bits = slc_plan_fingerprint(plan);
    slc_plan_destroy(plan);
    return bits;
}

static void only_the_seed_makes_a_difference(void **state)
{
    (void)state;
    static drawn d;
    uint32_t other_seeds_differ = 0;
    for (uint64_t seed = 0; seed < JOBS / 4; seed++) {
        draw_all(&d, seed);
        const slc_scheduler *scheduler;
        for (size_t s = 0; (scheduler = slc_scheduler_at(s)); s++)
            assert_int_equal(fingerprint(&d.in, scheduler), fingerprint(&d.in, scheduler));
        slc_scheduling other = d.in;
        other.seed++;
        other_seeds_differ += fingerprint(&d.in, &slc_scheduler_random) != fingerprint(&other, &slc_scheduler_random);
    }
    assert_true(other_seeds_differ > JOBS / 8);
}

/* Under any limit that serial can meet, greedy must not need more than the limit. */
static void greedy_fits_where_serial_does(void **state)
{
    (void)state;
    static drawn d;
    uint32_t hoisted = 0;
    for (uint64_t seed = 0; seed < JOBS; seed++) {
        draw_all(&d, seed);
        uint64_t serial, greedy;
        assert_int_equal(slc_plan_measure(&d.in, &slc_scheduler_serial, UINT64_MAX, &serial), SLUICE_OK);
        for (uint64_t quarters = 4; quarters < 9; quarters++) {
            d.in.limit = serial * quarters / 4;
            assert_int_equal(slc_plan_measure(&d.in, &slc_scheduler_greedy, UINT64_MAX, &greedy), SLUICE_OK);
            if (greedy > d.in.limit)
                fail_msg("job %llu: serial needs %llu bytes, greedy %llu of %llu", (unsigned long long)seed,
                         (unsigned long long)serial, (unsigned long long)greedy, (unsigned long long)d.in.limit);
            hoisted += greedy > serial;
        }
    }
    assert_true(hoisted > JOBS / 4);
}

/* ---- Equal layers ---- */

enum { LAYERS = 24 };

typedef struct {
    slc_job job;
    const char *layers[LAYERS];
    slc_unit units[LAYERS];
    slc_use uses[LAYERS];
    slc_activation_life activations[LAYERS];
    slc_strategy strategies[LAYERS];
    double slot_s[2 * LAYERS], recompute_s[LAYERS];
    slc_times times;
    slc_scheduling in;
} equal_layers;

/* The layers have 50 MB on 8 ranks with 10 Gbit/s; a step's compute takes `ratio` times as long as one reduction and
 * one gather of everything. */
static void equal_layers_init(equal_layers *e, slc_strategy strategy, double ratio)
{
    *e = (equal_layers){.job = {.world = 8,
                                .micro_batches = 1,
                                .states = 2,
                                .layer_count = LAYERS,
                                .layers = e->layers,
                                .units = e->units,
                                .unit_count = LAYERS,
                                .activations = e->activations,
                                .activation_count = LAYERS},
                        .times = {.slot_s = e->slot_s,
                                  .recompute_s = e->recompute_s,
                                  .update_s_per_element = 1e-10,
                                  .link = {.reduce_scatter = {50e-6, 1.25e9},
                                           .all_gather = {50e-6, 1.25e9},
                                           .sigma = 1,
                                           .block_bytes = 8 << 20}}};
    const uint64_t elements = 12 << 20, block = 1 << 18;
    double compute_s = ratio * 2 * 4 * (double)elements * 7 / 8 / 1.25e9;
    for (uint32_t l = 0; l < LAYERS; l++) {
        e->layers[l] = "layer";
        e->uses[l] = (slc_use){l, true};
        e->units[l] = (slc_unit){"layer", elements, block, SLUICE_FP32, true, &e->uses[l], .use_count = 1};
        e->activations[l] = (slc_activation_life){"x", 4 * elements, l, slc_backward_slot(&e->job, l), l, false};
        e->strategies[l] = strategy;
        e->slot_s[l] = compute_s / 3;
        e->slot_s[slc_backward_slot(&e->job, l)] = 2 * compute_s / 3;
    }
    e->in = (slc_scheduling){.job = &e->job, .strategies = e->strategies, .times = &e->times, .limit = UINT64_MAX};
}

static double step_s(const equal_layers *e, const slc_scheduler *scheduler)
{
    slc_plan *plan;
    slc_forecast forecast;
    assert_int_equal(slc_plan_make(&e->in, scheduler, &plan), SLUICE_OK);
    assert_int_equal(slc_simulate(&e->job, &e->times, plan, NULL, &forecast), SLUICE_OK);
    slc_plan_destroy(plan);
    return forecast.step_s;
}

/* If communication takes as long as compute, the reductions that a backward pass cannot hide must fit into the forward
 * pass. The simulator judges this, because its times are exact. */
static void priority_hides_what_buckets_expose(void **state)
{
    (void)state;
    static equal_layers e;
    equal_layers_init(&e, SLC_SDP, 1);
    assert_true(step_s(&e, &slc_scheduler_priority) < 0.95 * step_s(&e, &slc_scheduler_bucketed));
    equal_layers_init(&e, SLC_DP, 1);
    assert_true(step_s(&e, &slc_scheduler_priority) < 0.9 * step_s(&e, &slc_scheduler_bucketed));
}

static void greedy_is_faster_where_memory_allows(void **state)
{
    (void)state;
    static equal_layers e;
    equal_layers_init(&e, SLC_FSDP, 1.4);
    assert_true(step_s(&e, &slc_scheduler_greedy) < 0.99 * step_s(&e, &slc_scheduler_one_ahead));
    assert_true(step_s(&e, &slc_scheduler_one_ahead) < 0.7 * step_s(&e, &slc_scheduler_serial));
}

static void order_of(const equal_layers *e, const slc_scheduler *scheduler, slc_order *order)
{
    *order = (slc_order){0};
    scheduler->train(&e->in, order);
    assert_false(order->failed);
}

static bool orders_equal(const slc_order *a, const slc_order *b)
{
    if (a->count != b->count) return false;
    for (uint32_t i = 0; i < a->count; i++)
        if (a->items[i].kind != b->items[i].kind || a->items[i].unit != b->items[i].unit) return false;
    return true;
}

/* Greedy leaves a tenth of the limit for holes in the packing. If the rest holds the plan that it makes without a
 * limit, it makes that plan; if not, it gives something up: its account of memory is exact, whichever rule says how
 * long a sum lives. The workspace of an upper layer makes the backward pass the peak. */
static void greedy_gives_up_what_does_not_fit(void **state)
{
    (void)state;
    static equal_layers e;
    slc_workspace_life work = {.slot = slc_backward_slot(&(slc_job){.layer_count = LAYERS}, 15), .bytes = 1200 << 20};
    for (int rule = 0; rule < 4; rule++) {
        equal_layers_init(&e, SLC_FSDP, 1);
        e.job.each = rule & 1, e.job.barrier = rule & 2;
        e.job.workspaces = &work, e.job.workspace_count = 1;
        uint64_t bytes;
        assert_int_equal(slc_plan_measure(&e.in, &slc_scheduler_greedy, UINT64_MAX, &bytes), SLUICE_OK);
        slc_order all, some;
        order_of(&e, &slc_scheduler_greedy, &all);
        for (int fits = 0; fits < 2; fits++) {
            e.in.limit = (uint64_t)((fits ? 1.01 : 0.99) / 0.9 * (double)bytes);
            order_of(&e, &slc_scheduler_greedy, &some);
            assert_int_equal(orders_equal(&all, &some), fits);
            slc_order_fini(&some);
        }
        slc_order_fini(&all);
    }
}

/* A gather that takes hardly longer together with the next one stays with it, so that no slot comes between them. */
static void greedy_moves_short_gathers_with_the_next(void **state)
{
    (void)state;
    static equal_layers e;
    equal_layers_init(&e, SLC_FSDP, 1);
    for (uint32_t l = 2; l < LAYERS; l += 3) e.units[l].elements = 128;
    uint64_t serial;
    assert_int_equal(slc_plan_measure(&e.in, &slc_scheduler_serial, UINT64_MAX, &serial), SLUICE_OK);
    for (uint64_t more = 1; more < 8; more += 2) {
        slc_order order;
        uint32_t with = 0, apart = 0;
        e.in.limit = (uint64_t)((double)(serial + (more * 24 << 20)) / 0.9);
        order_of(&e, &slc_scheduler_greedy, &order);
        for (uint32_t i = 0; i + 1 < order.count; i++) {
            if (order.items[i].kind != SLC_ITEM_GATHER_WINDOW || order.items[i].unit % 3 != 2) continue;
            *(order.items[i + 1].kind == SLC_ITEM_GATHER_WINDOW ? &with : &apart) += 1;
        }
        assert_true(with > LAYERS / 3 && !apart);
        slc_order_fini(&order);
    }
}

/* Reductions of upper layers must be late, those of the lowest layer never; with a barrier nothing is late. */
static void priority_lets_upper_layers_wait(void **state)
{
    (void)state;
    static equal_layers e;
    equal_layers_init(&e, SLC_SDP, 1);
    for (int barrier = 0; barrier < 2; barrier++) {
        slc_order order;
        uint32_t late = 0;
        e.job.barrier = barrier;
        order_of(&e, &slc_scheduler_priority, &order);
        for (uint32_t i = 0; i < order.count; i++) {
            late += order.items[i].late;
            assert_false(order.items[i].late && order.items[i].unit == 0);
        }
        assert_true(barrier ? !late : late > LAYERS);
        slc_order_fini(&order);
    }
}

/* A link among more ranks wants longer messages than the run that was measured among few. */
static void partitions_saturate_the_link_of_many_ranks(void **state)
{
    (void)state;
    static equal_layers e;
    uint32_t runs[2] = {0};
    for (int many = 0; many < 2; many++) {
        slc_order order;
        equal_layers_init(&e, SLC_SDP, 1);
        e.job.world = many ? 64 : 2; /* 50 us and 1.25 GB/s: 76 MB and 2.4 MB saturate the link */
        order_of(&e, &slc_scheduler_priority, &order);
        for (uint32_t i = 0; i < order.count; i++) runs[many] += order.items[i].kind == SLC_ITEM_REDUCE_SCATTER;
        slc_order_fini(&order);
    }
    assert_int_equal(runs[0], 6 * LAYERS); /* 48 MiB in runs of 8 MiB */
    assert_int_equal(runs[1], LAYERS);
}

/* With units of 5 MiB the first bucket must hold one and the others five; a bucket's reductions follow each other. */
static void buckets_are_those_of_ddp(void **state)
{
    (void)state;
    static equal_layers e;
    equal_layers_init(&e, SLC_DP, 1);
    for (uint32_t l = 0; l < LAYERS; l++) e.units[l].elements = 5 << 18; /* 5 MiB */
    slc_order order;
    order_of(&e, &slc_scheduler_bucketed, &order);
    uint32_t lengths[LAYERS] = {0}, runs = 0;
    for (uint32_t i = 0; i < order.count; i++) {
        if (order.items[i].kind != SLC_ITEM_ALL_REDUCE) continue;
        if (order.items[i - 1].kind != SLC_ITEM_ALL_REDUCE) runs++;
        lengths[runs - 1]++;
    }
    slc_order_fini(&order);
    static const uint32_t expected[] = {1, 5, 5, 5, 5, 3};
    assert_int_equal(runs, sizeof expected / sizeof *expected);
    for (uint32_t r = 0; r < runs; r++) assert_int_equal(lengths[r], expected[r]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans_run_at_any_speed),
        cmocka_unit_test(nothing_precedes_the_agreement_that_it_needs),
        cmocka_unit_test(names_are_those_of_the_schedulers),
        cmocka_unit_test(only_the_seed_makes_a_difference),
        cmocka_unit_test(greedy_fits_where_serial_does),
        cmocka_unit_test(priority_hides_what_buckets_expose),
        cmocka_unit_test(greedy_is_faster_where_memory_allows),
        cmocka_unit_test(greedy_gives_up_what_does_not_fit),
        cmocka_unit_test(greedy_moves_short_gathers_with_the_next),
        cmocka_unit_test(priority_lets_upper_layers_wait),
        cmocka_unit_test(partitions_saturate_the_link_of_many_ranks),
        cmocka_unit_test(buckets_are_those_of_ddp),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
