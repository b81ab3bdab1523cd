/* Draws stand for the steps of a run: each layer is kept as often as its probability says, and the mean step of the
 * simulator is the mean over them. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "lib/plan/left_out.h"
#include "sched/simulate/draws.h"
#include "sched/simulate/simulate.h"
#include "tests/support/sched/drawn_plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LAYERS = 9, MOST_DRAWS = 32, SEEDS = 2000, JOBS = 60 };

static const double keeps[LAYERS] = {1, 1, 0.95, 0.8, 0.55, 0.5, 0.31, 0.125, 1};

static void few_draws_keep_layers_as_often_as_they_should(void **state)
{
    (void)state;
    const slc_job job = {.layer_count = LAYERS};
    bool left_out[MOST_DRAWS * LAYERS], again[MOST_DRAWS * LAYERS];
    for (uint32_t draws = 1; draws <= MOST_DRAWS; draws++)
        for (uint64_t seed = 0; seed < 20; seed++) {
            slc_draws_make(&job, keeps, draws, seed, left_out);
            slc_draws_make(&job, keeps, draws, seed, again);
            assert_memory_equal(left_out, again, draws * LAYERS);
            for (uint32_t l = 0; l < LAYERS; l++) {
                uint32_t kept = 0;
                for (uint32_t d = 0; d < draws; d++) kept += !left_out[d * LAYERS + l];
                assert_true(kept >= floor(keeps[l] * draws - 1e-9) && kept <= ceil(keeps[l] * draws + 1e-9));
            }
        }
}

/* Over many seeds each draw keeps a layer with its probability, and two layers apart from each other, within four
 * standard errors. */
static void draws_are_fair(void **state)
{
    (void)state;
    const slc_job job = {.layer_count = LAYERS};
    bool left_out[5 * LAYERS];
    uint32_t kept[LAYERS] = {0}, both = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        slc_draws_make(&job, keeps, 5, seed, left_out);
        const bool *third = left_out + 2 * LAYERS;
        for (uint32_t l = 0; l < LAYERS; l++) kept[l] += !third[l];
        both += !third[4] && !third[6];
    }
    for (uint32_t l = 0; l < LAYERS; l++)
        assert_true(fabs(kept[l] - keeps[l] * SEEDS) <= 4 * sqrt(keeps[l] * (1 - keeps[l]) * SEEDS));
    const double p = keeps[4] * keeps[6];
    assert_true(fabs(both - p * SEEDS) <= 4 * sqrt(p * (1 - p) * SEEDS));
}

/* Sums up the items of a step, in turn on one lane. */
static double seconds_without(const drawn_plan *d, const bool *left_out)
{
    double sum = 0;
    for (uint32_t i = 0; i < d->plan->train.item_count; i++) {
        const slc_item *item = &d->plan->train.items[i];
        if (item->kind == SLC_ITEM_SLOT && !left_out[slc_slot_layer(&d->t.job, item->slot)])
            sum += slc_slot_s(&d->t.job, &d->times, d->plan->recompute, item->slot);
        else if (item->kind != SLC_ITEM_SLOT &&
                 (item->unit == SLC_NONE || !slc_unit_left_out(&d->t.job.units[item->unit], left_out)))
            sum += slc_item_s(&d->t.job, &d->times, d->strategies, item);
    }
    return sum;
}

/* The mean step of a plan in which nothing overlaps is the mean of its draws' sums; any other is no longer than that
 * and no shorter than the mean compute. Without probabilities below 1 nothing changes. */
static void look_at_the_mean(drawn_plan *d)
{
    const slc_job *job = &d->t.job;
    bool left_out[SLC_DRAWS_FEW * TEST_LAYERS];
    double p[TEST_LAYERS], serial_s = 0, compute_s = 0;
    slc_forecast mean, same, whole;
    const slc_simulation few = slc_simulation_of_search(NULL);
    slc_item_times *items = calloc(d->plan->train.item_count + 1, sizeof *items);
    assert_non_null(items);
    d->times.link.thread_moves = true;
    for (uint32_t l = 0; l < job->layer_count; l++) p[l] = 1;
    assert_int_equal(slc_simulate(job, &d->times, d->plan, &few, &whole), 0);
    assert_int_equal(slc_times_set_keeps(job, p, &d->times), 0);
    assert_null(d->times.keeps);
    for (uint32_t l = 1; l + 1 < job->layer_count; l++) p[l] = 1 - 0.6 * l / job->layer_count;
    assert_int_equal(slc_times_set_keeps(job, p, &d->times), 0);
    if (!d->times.keeps) {
        free(items);
        return;
    }
    assert_int_equal(slc_simulate_items(job, &d->times, d->plan, &few, &mean, items), 0);
    assert_int_equal(slc_simulate(job, &d->times, d->plan, &few, &same), 0);
    assert_true(mean.step_s == same.step_s && mean.exposed_s == same.exposed_s);
    assert_true(mean.passes == SLC_DRAWS_FEW + 1 && !mean.steady && mean.step_s <= whole.step_s * (1 + 1e-9));
    slc_draws_make(job, d->times.keeps, SLC_DRAWS_FEW, SLC_DRAWS_FEW_SEED, left_out);
    for (uint32_t k = 0; k < SLC_DRAWS_FEW; k++) {
        serial_s += seconds_without(d, left_out + (size_t)k * job->layer_count) / SLC_DRAWS_FEW;
        for (uint32_t s = 0; s < slc_job_slots(job); s++)
            if (!left_out[k * job->layer_count + slc_slot_layer(job, s)])
                compute_s += job->micro_batches * d->times.slot_s[s] / SLC_DRAWS_FEW;
    }
    assert_true(mean.step_s <= serial_s * (1 + 1e-9) && mean.step_s >= compute_s * (1 - 1e-9));
    if (!strcmp(d->plan->schedule, "serial")) assert_true(fabs(mean.step_s - serial_s) <= 1e-9 * serial_s);
    for (uint32_t i = 0; i < d->plan->train.item_count; i++) assert_true(items[i].end_s >= items[i].start_s);
    assert_int_equal(slc_times_set_keeps(job, NULL, &d->times), 0);
    assert_int_equal(slc_simulate(job, &d->times, d->plan, &few, &same), 0);
    assert_true(whole.step_s == same.step_s && whole.steady == same.steady);
    free(items);
}

static void the_mean_step_is_that_of_its_draws(void **state)
{
    (void)state;
    drawn_plans_look(JOBS, look_at_the_mean);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_draws_keep_layers_as_often_as_they_should),
        cmocka_unit_test(draws_are_fair),
        cmocka_unit_test(the_mean_step_is_that_of_its_draws),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
