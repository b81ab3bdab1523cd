/* Every scheduler on random jobs, with random times, limits, seeds and recomputation: its plans are valid, run at any
 * speed, and are the same when made again; what each is for is seen where it must show. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "sched/scheduler.h"
#include "sched/two_lanes_test.h"

enum { JOBS = 120, RUNS = 2 };

/* From nothing at all to far more than the rest. */
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
    for (uint32_t u = 0; u < job->unit_count; u++) /* a forward reads them, in the backward slot too */
        for (uint32_t i = 0; i < job->units[u].use_count; i++)
            d->t.uses[u][i].backward_value |= d->can_recompute[d->t.uses[u][i].layer];
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans_run_at_any_speed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
