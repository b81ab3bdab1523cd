/* Reports of what was measured: the times of layers; the steps of the plan that runs, beside its prediction.
 * tests/engine/drift_test.c covers this file. */
#include "lib/base/numbers/floats.h"
#include "lib/base/integer.h"
#include "lib/base/sized.h"
#include "lib/base/status.h"
#include "lib/engine/measure/measure.h"
#include "lib/engine/runtime.h"

#include <sluice/plan.h>

/* Predicts the step of the current plan from measured times. Slots are measured while communication runs, so their
 * times already hold what it slows them down, and kappa is 0. */
static sluice_status predict_anew(sluice_runtime *rt, double *step_s)
{
    const slc_planner *planner = &rt->planning.planner;
    slc_times times = {0};
    sluice_status status = slc_engine_measure_times(rt, &times);
    times.link.kappa = times.link.update_kappa = 0;
    if (!status && planner->forecast)
        status = planner->forecast(planner->context, &rt->job, &times, rt->current.plan, step_s);
    slc_times_fini(&times);
    return status;
}

sluice_status sluice_runtime_layer_times(const sluice_runtime *rt, uint32_t layer, double *forward_s,
                                         double *backward_s)
{
    if (!rt || !forward_s || !backward_s)
        return slc_error(SLUICE_ERR_ARGUMENT, "layer_times: no runtime, or no place for the times");
    if (!rt->committed) return slc_error(SLUICE_ERR_ORDER, "layer_times: before commit");
    const bool staged = slc_is_stage(&rt->stage);
    const uint32_t layers = staged ? rt->stage.whole.layer_count : rt->job.layer_count;
    if (layer >= layers) return slc_error(SLUICE_ERR_ARGUMENT, "layer_times: layer %u of %u", layer, layers);
    *forward_s = *backward_s = 0;
    for (uint32_t own = 0; own < rt->job.layer_count; own++) {
        if ((staged ? rt->stage.now->own.layers[own] : own) != layer) continue;
        *forward_s = slc_measured_slot_s(rt->measure, slc_forward_slot(own));
        *backward_s = slc_measured_slot_s(rt->measure, slc_backward_slot(&rt->job, own));
    }
    return SLUICE_OK;
}

sluice_status sluice_runtime_prediction(sluice_runtime *rt, sluice_prediction *prediction)
{
    SLC_HOLD_FLOATS;
    double late_s;
    sluice_prediction made = {0};
    sluice_status status = slc_runtime_require_mode(rt, SLC_IDLE, "prediction");
    if (!status && !prediction) status = slc_error(SLUICE_ERR_ARGUMENT, "prediction: no place for the result");
    if (!status) status = slc_sized_check("sluice_prediction", NULL, prediction, sizeof *prediction);
    if (!status) status = slc_comm_meet(rt->comm, "prediction", NULL);
    if (!status) status = slc_measure_usual_step(rt, &made.measured, &late_s);
    if (!status && made.measured.step_s > 0 && rt->current.measured) status = predict_anew(rt, &made.anew_s);
    if (status) return status;
    made.predicted = rt->current.predicted;
    made.steps = slc_least(rt->measure->kept.count, SLC_STEPS_KEPT);
    if (made.predicted.step_s > 0 && made.measured.step_s > 0)
        made.miss = slc_step_miss_of(&made.predicted, &made.measured);
    slc_sized_write(&made, sizeof made, prediction);
    return SLUICE_OK;
}
