/* Simulated steps of drawn plans must keep the rules that hold for any plan: bounds on their length, scaling of time,
 * layers and micro-batches that are left out, the order of items. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/support/sched/drawn_plan.h"
#include "tests/support/sched/hand_plan.h"

#include <math.h>
#include <stdlib.h>

enum { JOBS = 300 };

static double simulated_step(const drawn_plan *d)
{
    slc_forecast f;
    if (slc_simulate(&d->t.job, &d->times, d->plan, NULL, &f)) fail_msg("%s", sluice_last_error());
    assert_true(f.steady);
    check(f.step_s, f.compute_s + f.exposed_s);
    return f.step_s;
}

/* An exchange has two phases, each moving the bytes that a rank sends to the others; every rank averages its part. */
static double exchange_s(const drawn_plan *d, const slc_unit *unit)
{
    const slc_link *link = &d->times.link;
    double n = d->t.job.world, sent = (double)unit->exchange.wire * (n - 1) / n;
    return link->operation_s + (link->reduce_scatter.latency_s + link->all_gather.latency_s) * (n - 1) +
           sent / link->reduce_scatter.bytes_per_s + sent / link->all_gather.bytes_per_s +
           d->times.average_s_per_element * (double)unit->elements / n;
}

static bool on_thread(const slc_item *item)
{
    if (item->on_compute) return false;
    return item->kind == SLC_ITEM_UPDATE || item->kind == SLC_ITEM_COMPRESS || item->kind == SLC_ITEM_INSPECT;
}

static double onebit_s(const drawn_plan *d, const slc_item *item)
{
    const slc_unit *unit = &d->t.job.units[item->unit];
    switch (item->kind) {
    case SLC_ITEM_COMPRESS: return d->times.compress_s_per_element * (double)unit->elements;
    case SLC_ITEM_EXCHANGE: return exchange_s(d, unit);
    case SLC_ITEM_UPDATE: return d->times.apply_s_per_element * (double)unit->elements;
    default: return 0; /* an all-reduce runs in few steps, inspecting the gradient costs nothing */
    }
}

/* The seconds of an item that runs alone. */
static double item_s(const drawn_plan *d, const slc_item *item)
{
    const slc_job *job = &d->t.job;
    uint64_t elements =
        item->unit == SLC_NONE ? 0 : slc_run_elements(&job->units[item->unit], item->first_block, item->block_count);
    if (item->kind == SLC_ITEM_SLOT) return slc_slot_s(job, &d->times, d->recompute, item->slot);
    if (item->unit != SLC_NONE && d->strategies[item->unit] == SLC_ONEBIT) return onebit_s(d, item);
    if (item->kind == SLC_ITEM_UPDATE) {
        double known_s = d->times.update_compute_s_per_element;
        double s = item->on_compute && known_s > 0 ? known_s : d->times.update_s_per_element;
        return s * (double)elements / (d->strategies[item->unit] == SLC_DP ? 1 : job->world);
    }
    const slc_unit *unit = item->unit == SLC_NONE ? NULL : &job->units[item->unit];
    return slc_operation_s(job, &d->times, item->kind, unit, elements);
}

typedef struct {
    double compute_s, link_s, update_s;
} alone;

/* Micro-batches 0 to run - 2 and the last one run. */
static bool is_left_out(const drawn_plan *d, const slc_item *item, uint32_t run)
{
    const uint32_t last = d->t.job.micro_batches - 1;
    switch (item->kind) {
    case SLC_ITEM_SLOT:
    case SLC_ITEM_GATHER_WINDOW:
    case SLC_ITEM_REDUCE_SCATTER:
    case SLC_ITEM_ALL_REDUCE: return item->micro_batch != last && item->micro_batch + 1 >= run;
    default: return false;
    }
}

/* Sums up the items of a step that runs so many micro-batches. */
static alone sums_of_run(const drawn_plan *d, uint32_t run)
{
    alone sums = {0};
    for (uint32_t i = 0; i < d->plan->train.item_count; i++) {
        const slc_item *item = &d->plan->train.items[i];
        bool computed = item->kind == SLC_ITEM_SLOT || item->on_compute;
        if (is_left_out(d, item, run)) continue;
        *(computed ? &sums.compute_s : on_thread(item) ? &sums.update_s : &sums.link_s) += item_s(d, item);
    }
    return sums;
}

static alone sums_of(const drawn_plan *d)
{
    return sums_of_run(d, d->t.job.micro_batches);
}

static void look_at_bounds(drawn_plan *d)
{
    alone sums = sums_of(d);
    double step_s = simulated_step(d), tolerance = 1 + 1e-9;
    double lane_s = d->times.link.thread_moves ? sums.link_s + sums.update_s : fmax(sums.link_s, sums.update_s);
    assert_true(step_s * tolerance >= sums.compute_s);
    assert_true(step_s * tolerance >= lane_s);
    assert_true(step_s <= (sums.compute_s + sums.link_s + sums.update_s) * tolerance);
    d->times.link.thread_moves = true;
    if (!strcmp(d->plan->schedule, "serial")) check(sums.compute_s + sums.link_s + sums.update_s, simulated_step(d));
}

static void a_step_lies_between_its_bounds(void **state)
{
    (void)state;
    drawn_plans_look(JOBS, look_at_bounds);
}

static void look_at_fewer(drawn_plan *d)
{
    const uint32_t all = d->t.job.micro_batches;
    const double whole_s = simulated_step(d);
    const bool moves = d->times.link.thread_moves;
    for (uint32_t run = 1; run <= all; run++) {
        slc_forecast f;
        const alone sums = sums_of_run(d, run);
        const double most_s = sums.compute_s + sums.link_s + sums.update_s, tolerance = 1 + 1e-9;
        const slc_simulation options = {.micro_batches = run};
        assert_int_equal(slc_simulate(&d->t.job, &d->times, d->plan, &options, &f), SLUICE_OK);
        assert_true(f.step_s * tolerance >= sums.compute_s && f.step_s <= most_s * tolerance);
        if (run == all) assert_true(f.step_s == whole_s);
        if (strcmp(d->plan->schedule, "serial") != 0) continue;
        d->times.link.thread_moves = true;
        assert_int_equal(slc_simulate(&d->t.job, &d->times, d->plan, &options, &f), SLUICE_OK);
        check(most_s, f.step_s);
        d->times.link.thread_moves = moves;
    }
}

static void micro_batches_that_are_left_out_take_no_time(void **state)
{
    (void)state;
    drawn_plans_look(JOBS, look_at_fewer);
}

/* Sums up the items of a step without some layers. */
static alone sums_without(const drawn_plan *d, const bool *left_out)
{
    alone sums = {0};
    for (uint32_t i = 0; i < d->plan->train.item_count; i++) {
        const slc_item *item = &d->plan->train.items[i];
        const slc_unit *unit = item->unit == SLC_NONE ? NULL : &d->t.job.units[item->unit];
        const bool slot = item->kind == SLC_ITEM_SLOT, computed = slot || item->on_compute;
        bool out = slot ? left_out[slc_slot_layer(&d->t.job, item->slot)]
                        : unit && unit->role == SLC_UNIT_WHOLE && (unit->fused || unit->use_count < 2);
        for (uint32_t u = 0; !slot && out && u < unit->use_count; u++) out = left_out[unit->uses[u].layer];
        if (out) continue;
        *(computed ? &sums.compute_s : on_thread(item) ? &sums.update_s : &sums.link_s) += item_s(d, item);
    }
    return sums;
}

/* Every layer is left out alone, then with all that come after it. */
static void look_at_layers_left_out(drawn_plan *d)
{
    const uint32_t layers = d->t.job.layer_count;
    const bool serial = !strcmp(d->plan->schedule, "serial");
    const double whole_s = simulated_step(d), tolerance = 1 + 1e-9;
    bool *left_out = calloc(layers, sizeof *left_out);
    assert_non_null(left_out);
    for (uint32_t l = 0; l < 2 * layers; l++) {
        slc_forecast f;
        for (uint32_t k = 0; k < layers; k++) left_out[k] = l < layers ? k == l : k >= l - layers;
        const alone sums = sums_without(d, left_out);
        const double most_s = sums.compute_s + sums.link_s + sums.update_s;
        const slc_simulation options = {.left_out = left_out};
        assert_int_equal(slc_simulate(&d->t.job, &d->times, d->plan, &options, &f), SLUICE_OK);
        assert_true(f.step_s * tolerance >= sums.compute_s && f.step_s <= most_s * tolerance);
        if (serial && d->times.link.thread_moves) check(most_s, f.step_s);
    }
    memset(left_out, 0, layers * sizeof *left_out);
    slc_forecast f;
    assert_int_equal(slc_simulate(&d->t.job, &d->times, d->plan, &(slc_simulation){.left_out = left_out}, &f),
                     SLUICE_OK);
    assert_true(f.step_s == whole_s);
    free(left_out);
}

static void layers_that_are_left_out_take_no_time(void **state)
{
    (void)state;
    drawn_plans_look(JOBS, look_at_layers_left_out);
}

static void look_at_scaling(drawn_plan *d)
{
    const double factor = 3.7e4;
    double step_s = simulated_step(d);
    for (uint32_t s = 0; s < slc_job_slots(&d->t.job); s++) d->times.slot_s[s] *= factor;
    for (uint32_t l = 0; l < d->t.job.layer_count; l++) d->times.recompute_s[l] *= factor;
    d->times.update_s_per_element *= factor;
    d->times.update_compute_s_per_element *= factor;
    d->times.compress_s_per_element *= factor;
    d->times.apply_s_per_element *= factor;
    d->times.average_s_per_element *= factor;
    slc_link *link = &d->times.link;
    link->operation_s *= factor;
    link->reduce_scatter =
        (slc_link_line){link->reduce_scatter.latency_s * factor, link->reduce_scatter.bytes_per_s / factor};
    link->all_gather = (slc_link_line){link->all_gather.latency_s * factor, link->all_gather.bytes_per_s / factor};
    check(1, simulated_step(d) / factor / step_s);
}

static void time_has_no_unit(void **state)
{
    (void)state;
    drawn_plans_look(JOBS, look_at_scaling);
}

static void look_at_bandwidth(drawn_plan *d)
{
    d->times.link.kappa = 0;
    d->times.link.sigma = 1;
    double step_s = simulated_step(d);
    for (int faster = 0; faster < 3; faster++) {
        d->times.link.reduce_scatter.bytes_per_s *= 1.7;
        d->times.link.all_gather.bytes_per_s *= 2.3;
        double faster_s = simulated_step(d);
        assert_true(faster_s <= step_s * (1 + 1e-9));
        step_s = faster_s;
    }
}

static void bandwidth_never_slows(void **state)
{
    (void)state;
    drawn_plans_look(JOBS, look_at_bandwidth);
}

/* Every wait must be kept, every resource must do one thing at a time, and no item may be faster than alone or slower
 * than when both lanes are busy. */
static void look_at_items(drawn_plan *d)
{
    const slc_program *program = &d->plan->train;
    slc_item_times *t = calloc(program->item_count + 1, sizeof *t);
    slc_forecast f;
    assert_non_null(t);
    assert_int_equal(slc_simulate_items(&d->t.job, &d->times, d->plan, NULL, &f, t), SLUICE_OK);
    double free_s[3] = {-1e9, -1e9, -1e9}, over_s = -1e9, little = 1e-9 * f.step_s, slowest = 0;
    for (uint32_t i = 0; i < program->item_count; i++) {
        const slc_item *item = &program->items[i];
        bool computed = item->kind == SLC_ITEM_SLOT || item->on_compute;
        int resource = computed ? 0 : on_thread(item) && !d->times.link.thread_moves ? 2 : 1;
        double took_s = t[i].end_s - t[i].start_s, alone_s = item_s(d, item);
        assert_true(t[i].open_s <= t[i].start_s + little && t[i].end_s <= t[i].over_s + little);
        assert_true(t[i].start_s >= free_s[resource] - little);
        free_s[resource] = t[i].end_s;
        assert_true(took_s >= alone_s - little);
        if (!computed) {
            assert_true(took_s <= d->times.link.sigma * alone_s + little);
            assert_true(t[i].over_s >= over_s - little);
            over_s = t[i].over_s;
        } else
            slowest += took_s;
        for (uint32_t a = 0; a < item->after_count; a++)
            assert_true(t[i].open_s >=
                        t[item->after[a].item].over_s - (item->after[a].previous ? f.step_s : 0) - little);
    }
    check(1, (slowest + 1) / (f.compute_s + 1));
    free(t);
}

static void items_keep_the_rules(void **state)
{
    (void)state;
    drawn_plans_look(JOBS, look_at_items);
}

static void look_at_spread(drawn_plan *d)
{
    d->times.link.kappa = 0;
    d->times.link.sigma = 1;
    double exact_s = simulated_step(d);
    slc_forecast f[3];
    const slc_simulation options[3] = {
        {.spread = 0.1, .seed = 7}, {.spread = 0.1, .seed = 7}, {.spread = 0.1, .seed = 8}};
    for (int i = 0; i < 3; i++)
        assert_int_equal(slc_simulate(&d->t.job, &d->times, d->plan, &options[i], &f[i]), SLUICE_OK);
    assert_true(f[0].step_s == f[1].step_s);
    assert_true(f[0].step_s != f[2].step_s || exact_s == 0);
    assert_true(f[0].step_s >= 0.9 * exact_s * (1 - 1e-9) && f[0].step_s <= 1.1 * exact_s * (1 + 1e-9));
    assert_false(f[0].steady);
}

/* The link's time shrinks by the latencies of the runs after an operation's first. */
static void look_at_latencies(drawn_plan *d)
{
    slc_forecast exact, once;
    const slc_simulation how = {.latency_once = true};
    double expected_s = 0;
    d->times.link.kappa = 0;
    d->times.link.sigma = 1;
    for (uint32_t i = 0; i < d->plan->train.item_count; i++) {
        const slc_item *item = &d->plan->train.items[i];
        if (item->kind == SLC_ITEM_SLOT || slc_is_on_thread(item->kind) || !item->first_block) continue;
        expected_s += fmin(item_s(d, item), slc_transfer_s(&d->t.job, &d->times, item->kind, 0));
    }
    assert_int_equal(slc_simulate(&d->t.job, &d->times, d->plan, NULL, &exact), SLUICE_OK);
    assert_int_equal(slc_simulate(&d->t.job, &d->times, d->plan, &how, &once), SLUICE_OK);
    if (exact.steady && once.steady) check(exact.communication_s - once.communication_s, expected_s);
}

static void an_operation_may_pay_its_latency_once(void **state)
{
    (void)state;
    drawn_plans_look(JOBS, look_at_latencies);
}

static void spread_is_a_function_of_its_seed(void **state)
{
    (void)state;
    drawn_plans_look(JOBS, look_at_spread);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_lies_between_its_bounds),
        cmocka_unit_test(micro_batches_that_are_left_out_take_no_time),
        cmocka_unit_test(layers_that_are_left_out_take_no_time),
        cmocka_unit_test(time_has_no_unit),
        cmocka_unit_test(bandwidth_never_slows),
        cmocka_unit_test(items_keep_the_rules),
        cmocka_unit_test(an_operation_may_pay_its_latency_once),
        cmocka_unit_test(spread_is_a_function_of_its_seed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
