/* Plans of random jobs must be valid, and do no harm when two lanes run them at random speeds. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "sched/layout/make_plan.h"
#include "sched/layout/parts.h"
#include "tests/support/sched/two_lanes.h"
#include "sched/simulate/simulate.h"
#include "sched/study/random_profile.h"
#include "tests/support/seed.h"
#include "tests/support/scale.h"

enum { JOBS = 250, RUNS = 4, TIMED_JOBS = 60, PLACED_JOBS = 12 };

static void check_random_job(uint64_t seed, two_lanes *lanes)
{
    test_dice dice = {.seed = seed};
    static test_job t;
    slc_strategy strategies[TEST_UNITS];
    test_job_draw(&t, &dice);
    test_strategies_draw(&t.job, &dice, strategies);
    const slc_scheduler *scheduler;
    for (size_t s = 0; (scheduler = slc_scheduler_at(s)); s++) {
        slc_plan *plan;
        if (slc_plan_make(&(slc_scheduling){.job = &t.job, .strategies = strategies, .limit = UINT64_MAX}, scheduler,
                          &plan))
            fail_msg("job %llu, %s: %s", (unsigned long long)seed, scheduler->name, sluice_last_error());
        assert_true(plan->lower_bound <= plan->arena_bytes);
        for (uint64_t run = 0; run < RUNS; run++) {
            two_lanes_run(lanes, &t.job, plan, seed * RUNS + run);
            if (lanes->error[0])
                fail_msg("job %llu, %s, run %llu: %s", (unsigned long long)seed, scheduler->name,
                         (unsigned long long)run, lanes->error);
            assert_true(lanes->peak <= plan->arena_bytes);
        }
        uint64_t measured;
        assert_int_equal(
            slc_plan_measure(&(slc_scheduling){.job = &t.job, .strategies = strategies, .limit = UINT64_MAX}, scheduler,
                             UINT64_MAX, &measured),
            SLUICE_OK);
        assert_int_equal(measured, plan->arena_bytes);
        slc_plan_destroy(plan);
    }
}

static void random_jobs_run_at_any_speed(void **state)
{
    (void)state;
    two_lanes *lanes = malloc(sizeof *lanes);
    assert_non_null(lanes);
    const uint32_t jobs = test_rounds(JOBS);
    for (uint64_t seed = 0; seed < jobs; seed++) check_random_job(seed, lanes);
    free(lanes);
}

/* The most bytes of claims while a slot runs. */
static uint64_t most_in_slots(const slc_program *program)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < program->item_count; i++) {
        uint64_t now = 0;
        for (uint32_t c = 0; c < program->claim_count && program->items[i].kind == SLC_ITEM_SLOT; c++) {
            const slc_claim *claim = &program->claims[c];
            bool from = claim->from <= i, to = i <= claim->to;
            if (slc_claim_wraps(program, claim) ? from || to : from && to) now += claim->end_byte - claim->first_byte;
        }
        if (now > most) most = now;
    }
    return most;
}

/* Gathering earlier and reducing later must never take less memory while a slot runs. Between slots it may: a reduction
 * whose sum has a buffer of its own holds both it and the gradient, and a late one runs when fewer activations live.
 * The exception is a reduction that takes more than it releases, with `each`: the gradient is resident, or it is the
 * smaller one (a bf16 gradient of an fp32 sum that is not sharded). */
static void serial_needs_no_more_than_one_ahead(void **state)
{
    (void)state;
    const uint32_t jobs = test_rounds(JOBS);
    for (uint64_t seed = 0; seed < jobs; seed++) {
        test_dice dice = {.seed = seed};
        static test_job t;
        test_job_draw(&t, &dice);
        for (int k = 0; k < SLC_EXACT_STRATEGIES; k++) {
            bool sums_grow = t.job.world == 1 && t.job.wire == SLUICE_BF16;
            if (t.job.each && (k == SLC_DP || k == SLC_OSS || sums_grow)) continue;
            slc_strategy strategies[TEST_UNITS];
            slc_plan *serial, *ahead;
            test_strategies_all(&t.job, (slc_strategy)k, strategies);
            const slc_scheduling in = {.job = &t.job, .strategies = strategies, .limit = UINT64_MAX};
            if (slc_plan_make(&in, &slc_scheduler_serial, &serial) ||
                slc_plan_make(&in, &slc_scheduler_one_ahead, &ahead))
                fail_msg("job %llu: %s", (unsigned long long)seed, sluice_last_error());
            uint64_t needs = most_in_slots(&serial->train), most = most_in_slots(&ahead->train);
            if (needs > most)
                fail_msg("job %llu, %s: serial needs %llu bytes, one_ahead %llu", (unsigned long long)seed,
                         slc_strategy_name((slc_strategy)k), (unsigned long long)needs, (unsigned long long)most);
            slc_plan_destroy(serial);
            slc_plan_destroy(ahead);
        }
    }
}

/* ---- Overlap, in a job of equal layers ---- */

enum { LAYERS = 6 };

typedef struct {
    slc_job job;
    const char *layers[LAYERS];
    slc_unit units[LAYERS];
    slc_use uses[LAYERS];
    slc_strategy strategies[LAYERS];
} equal_layers;

static void equal_layers_init(equal_layers *e, slc_strategy strategy)
{
    *e = (equal_layers){
        .job = {.world = 2, .micro_batches = 1, .states = 2, .layer_count = LAYERS, .unit_count = LAYERS}};
    e->job.layers = e->layers;
    e->job.units = e->units;
    for (uint32_t l = 0; l < LAYERS; l++) {
        e->layers[l] = "layer";
        e->uses[l] = (slc_use){l, true};
        e->units[l] = (slc_unit){"layer", 320, 64, SLUICE_FP32, true, &e->uses[l], .use_count = 1};
        e->strategies[l] = strategy;
    }
}

/* The most claims of a kind that span one item. */
static uint32_t most_at_once(const slc_plan *plan, slc_buffer_kind kind)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < plan->train.item_count; i++) {
        uint32_t now = 0;
        for (uint32_t c = 0; c < plan->train.claim_count; c++) {
            const slc_claim *claim = &plan->train.claims[c];
            now += plan->buffers[claim->buffer].kind == kind && claim->from <= i && i <= claim->to;
        }
        if (now > most) most = now;
    }
    return most;
}

static uint32_t find(const slc_plan *plan, slc_item_kind kind, uint32_t slot_or_unit, uint32_t index)
{
    for (uint32_t i = 0; i < plan->train.item_count; i++) {
        const slc_item *item = &plan->train.items[i];
        if (item->kind == kind && (kind == SLC_ITEM_SLOT ? item->slot : item->unit) == slot_or_unit &&
            item->index == index)
            return i;
    }
    fail_msg("no such item");
    return 0;
}

/* Returns true if `item` must have ended before `later` starts, directly or through the items that `later` needs. */
static bool waits_for(const slc_plan *plan, uint32_t later, uint32_t item)
{
    enum { UNKNOWN, BEGUN, OVER };
    const slc_item *items = plan->train.items;
    uint8_t known[TEST_ITEMS] = {UNKNOWN};
    known[later] = BEGUN;
    for (uint32_t i = later + 1; i-- > 0;) {
        if (known[i] == UNKNOWN) continue;
        for (uint32_t a = 0; a < items[i].after_count; a++)
            if (!items[i].after[a].previous) known[items[i].after[a].item] = OVER;
        bool slot = items[i].kind == SLC_ITEM_SLOT;
        uint32_t k = i;
        while (k > 0 && (items[k - 1].kind == SLC_ITEM_SLOT) != slot) k--;
        if (k > 0 && (slot || known[i] == OVER))
            known[k - 1] = OVER; /* slots run one at a time, operations end in order */
        else if (k > 0 && known[k - 1] == UNKNOWN)
            known[k - 1] = BEGUN;
    }
    return known[item] == OVER;
}

static void one_ahead_overlaps(void **state)
{
    (void)state;
    equal_layers e;
    slc_plan *plan;
    equal_layers_init(&e, SLC_FSDP);
    assert_int_equal(slc_plan_make(&(slc_scheduling){.job = &e.job, .strategies = e.strategies, .limit = UINT64_MAX},
                                   &slc_scheduler_one_ahead, &plan),
                     SLUICE_OK);
    assert_int_equal(most_at_once(plan, SLC_BUFFER_GATHERED), 2);
    assert_int_equal(most_at_once(plan, SLC_BUFFER_GRADIENT), 2);
    for (uint32_t l = 1; l < LAYERS; l++) {
        uint32_t before = find(plan, SLC_ITEM_SLOT, l - 1, 0);
        assert_false(waits_for(plan, find(plan, SLC_ITEM_GATHER_WINDOW, l, 0), before));
        uint32_t slot = find(plan, SLC_ITEM_SLOT, slc_backward_slot(&e.job, l - 1), 0);
        assert_false(waits_for(plan, slot, find(plan, SLC_ITEM_REDUCE_SCATTER, l, 0)));
        assert_true(waits_for(plan, slot, find(plan, SLC_ITEM_GATHER_WINDOW, l - 1, 1)));
    }
    slc_plan_destroy(plan);
}

static void serial_does_not_overlap(void **state)
{
    (void)state;
    for (int k = 0; k < SLC_EXACT_STRATEGIES; k++) {
        equal_layers e;
        slc_plan *plan;
        equal_layers_init(&e, (slc_strategy)k);
        assert_int_equal(
            slc_plan_make(&(slc_scheduling){.job = &e.job, .strategies = e.strategies, .limit = UINT64_MAX},
                          &slc_scheduler_serial, &plan),
            SLUICE_OK);
        assert_true(most_at_once(plan, SLC_BUFFER_GATHERED) <= 1);
        assert_true(most_at_once(plan, SLC_BUFFER_GRADIENT) <= 1);
        for (uint32_t i = 1; i < plan->train.item_count; i++)
            for (uint32_t before = 0; before < i; before++)
                if ((plan->train.items[i].kind == SLC_ITEM_SLOT) != (plan->train.items[before].kind == SLC_ITEM_SLOT))
                    assert_true(waits_for(plan, i, before));
        slc_plan_destroy(plan);
    }
}

/* ---- Packing by time ---- */

/* The step of the scheduler's order within the limit, whose plan must be valid and have the forecast that is told; 0 if
 * it does not fit. If half of that is asked for, there is no plan. */
static double step_within(const slc_profile *profile, const slc_strategy *strategies, const slc_scheduler *scheduler,
                          uint64_t limit, bool in_time)
{
    slc_scheduling in = {.job = &profile->job, .times = &profile->times, .strategies = strategies, .limit = limit};
    slc_order order = {0};
    slc_plan *plan = NULL;
    slc_plan *faster = NULL;
    slc_forecast told, forecast;
    uint64_t arena;
    scheduler->train(&in, &order);
    assert_false(order.failed);
    slc_trying trying = {.tries = 50, .in_time = in_time};
    assert_int_equal(slc_plan_try(&in, &order, scheduler, &trying, &plan, &arena, &told), SLUICE_OK);
    if (plan) assert_int_equal(arena, plan->arena_bytes);
    trying.at_most_s = plan ? told.step_s / 2 : 0;
    if (plan) assert_int_equal(slc_plan_try(&in, &order, scheduler, &trying, &faster, &arena, &forecast), SLUICE_OK);
    assert_null(faster);
    slc_order_fini(&order);
    if (!plan) return 0;
    assert_true(plan->lower_bound <= plan->arena_bytes && plan->arena_bytes <= limit);
    if (slc_plan_validate(in.job, plan)) fail_msg("%s: %s", profile->source, sluice_last_error());
    assert_int_equal(slc_simulate(in.job, in.times, plan, NULL, &forecast), SLUICE_OK);
    assert_true(told.step_s == forecast.step_s && told.peak_bytes == forecast.peak_bytes);
    slc_plan_destroy(plan);
    return forecast.step_s;
}

/* An order keeps to its limit, and never becomes slower; with a little memory to spare some become faster. */
static void packing_in_time_never_costs(void **state)
{
    (void)state;
    const slc_scheduler *schedulers[] = {&slc_scheduler_one_ahead, &slc_scheduler_greedy};
    slc_random_options options = slc_random_defaults();
    const uint32_t jobs = test_brief() ? TIMED_JOBS / 4 : TIMED_JOBS;
    uint32_t faster = 0;
    for (uint64_t seed = 1; seed <= jobs; seed++) {
        slc_profile *profile;
        uint64_t arena;
        const slc_scheduler *scheduler = schedulers[seed % 2];
        assert_int_equal(slc_random_profile(&options, test_seed(seed), &profile), SLUICE_OK);
        slc_strategy *strategies = calloc(profile->job.unit_count + 1, sizeof *strategies);
        assert_non_null(strategies);
        for (uint32_t u = 0; u < profile->job.unit_count; u++) strategies[u] = SLC_FSDP;
        slc_scheduling in = {.job = &profile->job, .times = &profile->times, .strategies = strategies};
        in.limit = UINT64_MAX;
        assert_int_equal(slc_plan_measure(&in, &slc_scheduler_one_ahead, UINT64_MAX, &arena), SLUICE_OK);
        arena += arena / 50;
        double plain = step_within(profile, strategies, scheduler, arena, false);
        double timed = step_within(profile, strategies, scheduler, arena, true);
        assert_int_equal(timed > 0, plain > 0);
        assert_true(timed <= plain * (1 + 1e-9));
        faster += timed < plain * 0.998;
        free(strategies);
        slc_profile_destroy(profile);
    }
    printf("%u of %u orders become faster\n", faster, jobs);
    assert_true(faster > 0);
}

/* ---- The places of another plan ---- */

/* Tries the order of `like` from these places alone. A plan that comes of it is valid, with the bound that packing
 * would find; *moved becomes how many buffers lie elsewhere, *step_s its step. False: there is none. */
static bool fits_from(const slc_scheduling *in, const slc_order *order, const slc_plan *like, const uint64_t *places,
                      uint32_t *moved, double *step_s)
{
    const slc_trying trying = {.like = like, .places = places, .only_places = true};
    slc_plan *plan;
    slc_forecast forecast;
    uint64_t arena;
    assert_int_equal(slc_plan_try(in, order, &slc_scheduler_one_ahead, &trying, &plan, &arena, &forecast), SLUICE_OK);
    if (!plan) return false;
    if (slc_plan_validate(in->job, plan)) fail_msg("%s", sluice_last_error());
    assert_true(arena == plan->arena_bytes && arena <= in->limit);
    assert_int_equal(slc_plan_find_bound(plan, NULL), SLUICE_OK);
    assert_true(plan->lower_bound == like->lower_bound);
    *moved = 0;
    for (uint32_t b = 0; b < plan->buffer_count; b++) *moved += plan->buffers[b].offset != places[b];
    *step_s = forecast.step_s;
    slc_plan_destroy(plan);
    return true;
}

/* Does what fits_from does, for places where no buffers overlap. */
static bool fits_at(const slc_scheduling *in, const slc_order *order, const slc_plan *like, const uint64_t *places,
                    double *step_s)
{
    uint32_t moved;
    if (!fits_from(in, order, like, places, &moved, step_s)) return false;
    assert_int_equal(moved, 0);
    return true;
}

/* Moves each buffer in turn next to all others. Returns in how many cases that gave a plan. */
static uint32_t move_buffers(const slc_scheduling *in, const slc_order *order, const slc_plan *plan, uint64_t *places)
{
    const slc_packing_effort effort = {.limit = in->limit};
    const uint32_t count = plan->buffer_count;
    uint32_t *neighbours = malloc(count * sizeof *neighbours), tried = 0, plans = 0, found;
    uint64_t *free_places = malloc(2 * count * sizeof *free_places);
    double step_s;
    assert_true(neighbours && free_places);
    for (uint32_t b = 0; b < count; b++) neighbours[b] = b;
    for (uint32_t b = 0; b < count; b++) {
        assert_int_equal(slc_plan_places_beside(plan, b, neighbours, count, &effort, free_places, &found), SLUICE_OK);
        if (!found) continue;
        places[b] = free_places[tried++ % found];
        plans += fits_at(in, order, plan, places, &step_s); /* only waits for later items may be in the way */
        places[b] = plan->buffers[b].offset;
    }
    free(free_places);
    free(neighbours);
    return plans;
}

/* Lays each buffer in turn where another one begins. Returns in how many cases buffers that overlapped there went to
 * gaps elsewhere. */
static uint32_t overlap_buffers(const slc_scheduling *in, const slc_order *order, const slc_plan *plan,
                                uint64_t *places)
{
    uint32_t mended = 0, moved;
    double step_s;
    for (uint32_t b = 0; b < plan->buffer_count; b++) {
        places[b] = plan->buffers[(b + 1) % plan->buffer_count].offset;
        mended += fits_from(in, order, plan, places, &moved, &step_s) && moved;
        places[b] = plan->buffers[b].offset;
    }
    return mended;
}

/* An order keeps the places of its own plan, with the same step. A buffer that moves to a place that is free gives a
 * valid plan too. A few buffers that overlap move to gaps between the others; if there are many there is no plan. */
static void places_of_another_plan_are_kept(void **state)
{
    (void)state;
    slc_random_options options = slc_random_defaults();
    uint32_t moved = 0, mended = 0;
    for (uint64_t seed = 1; seed <= test_rounds(PLACED_JOBS); seed++) {
        slc_profile *profile;
        assert_int_equal(slc_random_profile(&options, test_seed(seed), &profile), SLUICE_OK);
        slc_strategy *strategies = calloc(profile->job.unit_count + 1, sizeof *strategies);
        assert_non_null(strategies);
        for (uint32_t u = 0; u < profile->job.unit_count; u++) strategies[u] = u % 2 ? SLC_FSDP : SLC_SDP;
        slc_scheduling in = {.job = &profile->job, .times = &profile->times, .strategies = strategies};
        slc_order order = {0};
        slc_plan *plan;
        slc_forecast told;
        uint64_t arena;
        double step_s;
        in.limit = UINT64_MAX;
        slc_scheduler_one_ahead.train(&in, &order);
        assert_int_equal(slc_plan_try(&in, &order, &slc_scheduler_one_ahead, &(slc_trying){0}, &plan, &arena, &told),
                         SLUICE_OK);
        uint64_t *places = calloc(plan->buffer_count, sizeof *places);
        assert_non_null(places);
        in.limit = arena + arena / 20;
        assert_false(fits_at(&in, &order, plan, places, &step_s));
        for (uint32_t b = 0; b < plan->buffer_count; b++) places[b] = plan->buffers[b].offset;
        assert_true(fits_at(&in, &order, plan, places, &step_s));
        assert_true(step_s == told.step_s);
        moved += move_buffers(&in, &order, plan, places);
        mended += overlap_buffers(&in, &order, plan, places);
        free(places);
        slc_plan_destroy(plan);
        slc_order_fini(&order);
        free(strategies);
        slc_profile_destroy(profile);
    }
    assert_true(moved > 0 && mended > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_jobs_run_at_any_speed),
        cmocka_unit_test(packing_in_time_never_costs),
        cmocka_unit_test(places_of_another_plan_are_kept),
        cmocka_unit_test(serial_needs_no_more_than_one_ahead),
        cmocka_unit_test(one_ahead_overlaps),
        cmocka_unit_test(serial_does_not_overlap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
