/* Slots must take together what they take in a usual step, on made-up samples. */
#include "lib/engine/measure/measure.h"
#include "lib/plan/plan.h"

#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

enum { LAYERS = 10, SLOTS = 2 * LAYERS, BATCHES = 2, STEPS = 5 };

static const slc_job job = {.layer_count = LAYERS, .micro_batches = BATCHES};

static slc_measure *begin(void)
{
    slc_measure *measure;
    assert_int_equal(slc_measure_create(&job, &measure), SLUICE_OK);
    return measure;
}

/* Adds a step in which each slot takes 1, but twice that if `slow` says so, and updates take updates_s. */
static void add_step(slc_measure *measure, uint32_t step, bool (*slow)(uint32_t step, uint32_t run), double updates_s)
{
    sluice_step_parts parts = {.compute_s = updates_s};
    for (uint32_t run = 0; run < SLOTS * BATCHES; run++) {
        const double seconds = slow(step, run) ? 2 : 1;
        slc_measure_add_slot(measure, run % SLOTS, seconds);
        parts.compute_s += seconds;
    }
    measure->computed_update.seconds += updates_s;
    parts.step_s = parts.compute_s;
    slc_kept_steps_add(&measure->kept, &parts);
}

static bool never(uint32_t step, uint32_t run)
{
    (void)step;
    (void)run;
    return false;
}

/* Two of five runs, other ones in each step. */
static bool some(uint32_t step, uint32_t run)
{
    return (run + step + run / SLOTS) % 5 < 2;
}

static bool in_one_step(uint32_t step, uint32_t run)
{
    (void)run;
    return step == 1;
}

static void a_shared_core_lengthens_slots(void **state)
{
    (void)state;
    slc_measure *measure = begin();
    for (uint32_t step = 0; step < STEPS; step++) add_step(measure, step, some, 3);
    for (uint32_t s = 0; s < SLOTS; s++) assert_true(slc_measured_slot_s(measure, s) == 1);
    assert_true(fabs(slc_measured_lengthening(measure, &job) - 1.4) < 1e-12);
    slc_measure_destroy(measure);
}

static void one_slow_step_lengthens_nothing(void **state)
{
    (void)state;
    slc_measure *measure = begin();
    for (uint32_t step = 0; step < STEPS; step++) add_step(measure, step, in_one_step, 3);
    assert_true(fabs(slc_measured_lengthening(measure, &job) - 1) < 1e-12);
    slc_measure_destroy(measure);
}

static void quiet_or_few_steps_lengthen_nothing(void **state)
{
    (void)state;
    slc_measure *measure = begin();
    assert_true(slc_measured_lengthening(measure, &job) == 1);
    for (uint32_t step = 0; step < 2; step++) add_step(measure, step, some, 0);
    assert_true(slc_measured_lengthening(measure, &job) == 1);
    slc_measure_reset(measure, &job);
    for (uint32_t step = 0; step < STEPS; step++) add_step(measure, step, never, 0.5);
    assert_true(fabs(slc_measured_lengthening(measure, &job) - 1) < 1e-12);
    slc_measure_destroy(measure);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_shared_core_lengthens_slots),
        cmocka_unit_test(one_slow_step_lengthens_nothing),
        cmocka_unit_test(quiet_or_few_steps_lengthen_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
