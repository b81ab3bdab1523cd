/* The parts of the last steps: slots and waits as they are measured, the rest of the time outside of slots.
 * tests/engine/drift_test.c covers this file. */
#include "lib/engine/measure/measure.h"

#include "lib/base/clock.h"
#include "lib/base/status.h"
#include "lib/engine/runtime.h"

#include <math.h>
#include <stdlib.h>

void slc_measure_unlike(slc_measure *measure)
{
    measure->step_unlike = true;
}

void slc_measure_extent(slc_measure *measure, double extent)
{
    measure->extents += extent;
    measure->begun++;
}

double slc_measured_extent(const slc_measure *measure)
{
    return measure->begun ? measure->extents / (double)measure->begun : 0;
}

void slc_measure_step_begin(sluice_runtime *rt)
{
    slc_measure *m = rt->measure;
    m->step_unlike = false;
    m->step_compute_s = m->settled_s = 0;
    m->updated_before_s = m->computed_update.seconds;
    m->used_before = slc_comm_used(rt->lane);
    m->step_from_ns = slc_clock_ns();
}

/* Returns true if the step is measured as a usual one. While a plan is due, all steps count, with or without late
 * items: what is outside of slots is the same. */
static bool is_usual(const sluice_runtime *rt)
{
    const slc_measure *m = rt->measure;
    const bool whole = rt->train.kind[0] == SLC_PASS_WHOLE || rt->planning.replan_due;
    return m->step_from_ns && !m->step_unlike && whole && !rt->steps[rt->train.parity].skip;
}

static double waited_s(const sluice_runtime *rt)
{
    const slc_step_state *step = &rt->steps[rt->train.parity];
    return step->exposed_s + slc_stage_idle_s(&step->stage);
}

void slc_measure_step_end(sluice_runtime *rt)
{
    slc_measure *m = rt->measure;
    if (!is_usual(rt)) return;
    const slc_comm_use used = slc_comm_used(rt->lane);
    sluice_step_parts step = {
        .step_s = slc_seconds(slc_clock_ns() - m->step_from_ns),
        .compute_s = m->step_compute_s + (m->computed_update.seconds - m->updated_before_s),
        .waiting_s = waited_s(rt) + m->settled_s,
        .transfer_s = used.carried_s - m->used_before.carried_s,
    };
    step.outside_s = step.step_s - step.compute_s - step.waiting_s;
    slc_kept_steps_add(&m->kept, &step);
    m->late_s += used.late_s - m->used_before.late_s;
    m->met += used.operations - m->used_before.operations;
}

/* A rank's own figures, which it gives to the others. */
typedef struct {
    sluice_step_parts step;
    double late_s;
} known;

sluice_status slc_measure_usual_step(sluice_runtime *rt, sluice_step_parts *step, double *late_s)
{
    const slc_measure *m = rt->measure;
    const sluice_step_parts usual =
        rt->current.times.keeps ? slc_kept_steps_mean(&m->kept) : slc_kept_steps_usual(&m->kept);
    known own = {usual, m->met ? m->late_s / (double)m->met : 0};
    known *all = calloc((size_t)rt->size, sizeof *all), *slowest = all;
    if (!all) return slc_runtime_fail(rt, slc_error(SLUICE_ERR_MEMORY, "steps of %d ranks", rt->size));
    sluice_status status = sluice_world_all_gather(rt->world, &own, sizeof own, all);
    *late_s = status ? 0 : all->late_s;
    for (known *one = all + 1; !status && one < all + rt->size; one++) {
        *late_s = fmin(*late_s, one->late_s);
        if (one->step.compute_s > slowest->step.compute_s) slowest = one;
    }
    *step = status ? (sluice_step_parts){0} : slowest->step;
    free(all);
    return status;
}
