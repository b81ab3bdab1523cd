/* Plans of random legal orders do no harm when two lanes run them at random speeds and each step leaves other layers
 * out: what is left out keeps its place and moves nothing. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "lib/plan/left_out.h"
#include "tests/support/scale.h"
#include "tests/support/sched/drawn_plan.h"
#include "tests/support/sched/two_lanes.h"

#include <stdlib.h>
#include <string.h>

enum { JOBS = 150, RUNS = 4, STEPS = 7 };

typedef struct {
    uint32_t layers, units, late; /* of which steps left some out */
} coverage;

/* The first and the last layer, and layers that look rows up, run in every step. */
static bool always_runs(const slc_job *job, uint32_t layer)
{
    bool looks_up = false;
    for (uint32_t u = 0; u < job->unit_count; u++)
        looks_up |= job->units[u].role == SLC_UNIT_ROWS && job->units[u].uses[0].layer == layer;
    return looks_up || !layer || layer + 1 == job->layer_count;
}

/* Steps leave nothing, everything that they may, or some out. */
static void draw_layers(const slc_job *job, test_dice *dice, bool *left_out)
{
    for (uint32_t s = 0; s < STEPS; s++) {
        const uint32_t chance = test_below(dice, 5);
        for (uint32_t l = 0; l < job->layer_count; l++)
            left_out[s * job->layer_count + l] = !always_runs(job, l) && test_below(dice, 4) < chance;
    }
}

static void cover(const slc_job *job, const slc_plan *plan, const bool *left_out, coverage *seen)
{
    uint32_t units = 0, late = 0, layers = 0;
    for (uint32_t i = 0; i < STEPS * job->layer_count; i++) layers += left_out[i];
    for (uint32_t i = 0; i < plan->train.item_count; i++) {
        const slc_item *item = &plan->train.items[i];
        bool out = false;
        for (uint32_t s = 0; item->unit != SLC_NONE && s < STEPS; s++)
            out |= job->units[item->unit].use_count == 1 &&
                   left_out[s * job->layer_count + job->units[item->unit].uses[0].layer];
        units += out;
        late += out && item->late;
    }
    seen->layers += layers > 0;
    seen->units += units > 0;
    seen->late += late > 0;
}

static void check_job(uint64_t seed, two_lanes *lanes, coverage *seen)
{
    static test_job t;
    test_dice dice = {.seed = seed};
    bool left_out[STEPS * TEST_LAYERS];
    test_job_draw(&t, &dice);
    if (t.job.compressed) return; /* a compressed optimizer's steps run all layers */
    slc_plan *plan = legal_plan_draw(&t, &dice);
    for (uint64_t run = 0; run < RUNS; run++) {
        draw_layers(&t.job, &dice, left_out);
        cover(&t.job, plan, left_out, seen);
        two_lanes_run_some(lanes, &t.job, plan, left_out, STEPS, seed * RUNS + run);
        if (lanes->error[0])
            fail_msg("job %llu, run %llu: %s", (unsigned long long)seed, (unsigned long long)run, lanes->error);
    }
    slc_plan_destroy(plan);
}

static void what_is_left_out_keeps_its_place(void **state)
{
    (void)state;
    const uint32_t jobs = test_rounds(JOBS);
    coverage seen = {0};
    two_lanes *lanes = malloc(sizeof *lanes);
    assert_non_null(lanes);
    for (uint32_t j = 0; j < jobs; j++) check_job(j, lanes, &seen);
    free(lanes);
    if (seen.layers < jobs || seen.units < jobs || 8 * seen.late < jobs)
        fail_msg("%u runs left layers out, %u units, %u late operations", seen.layers, seen.units, seen.late);
}

/* A layer that shares a unit as a whole keeps it in every step; a fused unit is left out with all of its layers. */
static void a_unit_is_left_out_with_all_its_layers(void **state)
{
    (void)state;
    static test_job t;
    for (uint64_t seed = 0; seed < test_rounds(200); seed++) {
        test_dice dice = {.seed = seed};
        bool left_out[TEST_LAYERS];
        test_job_draw(&t, &dice);
        for (int again = 0; again < 20; again++) {
            for (uint32_t l = 0; l < t.job.layer_count; l++) left_out[l] = test_below(&dice, 2);
            for (uint32_t u = 0; u < t.job.unit_count; u++) {
                const slc_unit *unit = &t.job.units[u];
                uint32_t runs = 0;
                double keeps[TEST_LAYERS];
                for (uint32_t l = 0; l < t.job.layer_count; l++) keeps[l] = !left_out[l];
                for (uint32_t n = 0; n < unit->use_count; n++) runs += !left_out[unit->uses[n].layer];
                if (runs) assert_false(slc_unit_left_out(unit, left_out));
                assert_true(slc_unit_keeps(unit, keeps) == !slc_unit_left_out(unit, left_out));
                assert_true(slc_unit_keeps(unit, NULL) == 1);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_left_out_keeps_its_place),
        cmocka_unit_test(a_unit_is_left_out_with_all_its_layers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
