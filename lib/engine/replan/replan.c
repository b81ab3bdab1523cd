/* Re-planning: measures, asks for a plan, moves over to it. A failure before anything has moved leaves the old plan in
 * force. tests/engine/replan_test.c covers this file. */
#include "lib/base/numbers/floats.h"
#include "lib/base/log.h"
#include "lib/base/status.h"
#include "lib/engine/measure/measure.h"
#include "lib/engine/onebit/phase.h"
#include "lib/engine/replan/regroup.h"
#include "lib/engine/replan/replan.h"
#include "lib/engine/runtime.h"
#include "lib/engine/step/drain.h"
#include "lib/engine/step/pass.h"
#include "lib/plan/left_out.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* MEASURED_MORE: at most this many steps more are measured while some slot has not run, because steps have left its
 * layer out. */
enum { WARM_UP_STEPS = 1, MEASURED_STEPS = 2, MEASURED_AGAIN = 6, MEASURED_MORE = 20 };
enum { DRIFT_STEPS = 20, DRIFT_EVERY = 100 };
static const double LEAST_GAIN = 0.005; /* units stay unless others shorten the step by more */

sluice_status slc_engine_first_plan(sluice_runtime *rt)
{
    slc_plan_request request;
    slc_plan_answer answer = {0};
    rt->planning.replan_due = !rt->planning.kept && slc_engine_wants_times(rt, rt->planning.schedule);
    sluice_status status = slc_engine_first_request(rt, &request);
    if (status) return status;
    status = rt->planning.replan_due ? slc_engine_share_simple_plan(rt, &request, &answer)
                                     : slc_engine_share_plan(rt, &request, &answer);
    if (status) return status;
    rt->planning.dp_bytes = answer.dp_bytes;
    slc_engine_begin_plan(rt, &answer, NULL);
    return SLUICE_OK;
}

/* ---- Re-planning ---- */

/* Returns true if an error was no failure but an answer, after which training can go on as it is. */
static bool goes_on(const sluice_runtime *rt)
{
    return !rt->failure.status && !sluice_world_check(rt->world);
}

/* Finds out whether a second plan may be made, for other units; rank 0's configuration decides. It may not if there is
 * a time limit, which is meant for one plan. */
static sluice_status may_plan_again(sluice_runtime *rt, bool *may)
{
    uint32_t again = !(rt->config.plan_time_limit_s > 0);
    sluice_status status = sluice_world_broadcast(rt->world, &again, sizeof again, 0);
    *may = again;
    return slc_runtime_fail(rt, status);
}

/* Makes a plan of other units and adopts it, if the planner wants others by the request's times, and predicts shorter
 * steps with them than `known_s`; *moved is true then. Otherwise everything stays as it is. */
static sluice_status adopt_other_units(sluice_runtime *rt, const slc_plan_request *request, double known_s,
                                       slc_times *times, bool *moved)
{
    slc_kept_error kept; /* that no other units will do is no error */
    slc_regrouping regrouping = {0};
    slc_plan_answer answer = {0};
    slc_error_keep(&kept);
    sluice_status status = slc_regroup_begin(rt, request, &regrouping);
    if (!status && regrouping.on) status = slc_engine_share_plan(rt, request, &answer);
    if (!status && regrouping.on && answer.forecast.step_s < known_s * (1 - LEAST_GAIN)) {
        status = slc_engine_adopt_regrouped(rt, &answer, times, &regrouping);
        *moved = !status;
        slc_shapes_forget(rt);
    } else {
        slc_plan_destroy(answer.plan);
    }
    const bool alive = goes_on(rt);
    if (*moved && rt->rank == 0)
        slc_log(SLC_LOG_INFO, "plan %u: by measured times layers share %u units, not %u", rt->current.number,
                rt->job.unit_count, regrouping.before.count);
    if (*moved || !alive)
        slc_regroup_keep(rt, &regrouping);
    else if (regrouping.on)
        slc_regroup_undo(rt, &regrouping);
    if (!alive) return status;
    if (status && rt->rank == 0)
        slc_log(SLC_LOG_INFO, "plan %u: units stay as they are: %s", rt->current.number, sluice_last_error());
    return slc_error_restore(&kept, SLUICE_OK);
}

/* Adopts the plan that the request gives, of the units that there are or of others. */
static sluice_status plan_and_adopt(sluice_runtime *rt, const slc_plan_request *request, slc_times *times)
{
    slc_plan_answer answer;
    bool moved = false, again = false;
    sluice_status status = slc_engine_share_plan(rt, request, &answer);
    if (status) return status;
    if (slc_regroup_allowed(rt, request)) status = may_plan_again(rt, &again);
    if (!status && again) status = adopt_other_units(rt, request, answer.forecast.step_s, times, &moved);
    if (!status && !moved) return slc_engine_adopt_plan(rt, &answer, times);
    slc_plan_destroy(answer.plan);
    return status;
}

static sluice_status replan(sluice_runtime *rt, slc_plan_request *request)
{
    slc_times times = {0};
    bool measured = slc_engine_wants_times(rt, request->schedule);
    slc_trials_end(rt);
    sluice_status status = slc_runtime_drain(rt);
    if (!status && measured) status = slc_runtime_fail(rt, slc_engine_measure(rt, &times));
    if (!status && measured) status = slc_runtime_fail(rt, slc_shape_note_times(rt, &times));
    if (status) return status;
    request->times = measured ? &times : NULL;
    status = plan_and_adopt(rt, request, measured ? &times : NULL);
    slc_times_fini(&times);
    return status;
}

/* Times of slots and the link that were measured in the phase before still hold. */
sluice_status slc_engine_plan_phase(sluice_runtime *rt)
{
    slc_plan_request request = slc_engine_standing_request(rt);
    slc_plan_answer answer;
    if (slc_is_stage(&rt->stage)) return slc_stage_plan_phase(rt);
    slc_trials_end(rt);
    rt->planning.replan_due = slc_engine_wants_times(rt, request.schedule);
    if (rt->planning.replan_due && rt->measure->link_known) {
        sluice_status status = replan(rt, &request);
        if (status != SLUICE_ERR_BUDGET) return status;
    }
    request.times = NULL;
    sluice_status status = rt->planning.replan_due ? slc_engine_share_simple_plan(rt, &request, &answer)
                                                   : slc_engine_share_plan(rt, &request, &answer);
    return status ? status : slc_engine_adopt_plan(rt, &answer, NULL);
}

/* ---- Drift ---- */

static sluice_status measure_again(sluice_runtime *rt, double step_s)
{
    const sluice_step_parts *predicted = &rt->current.predicted;
    sluice_step_parts usual;
    double late_s;
    sluice_status status = slc_measure_usual_step(rt, &usual, &late_s);
    if (status) return status;
    const sluice_step_miss miss = slc_step_miss_of(predicted, &usual);
    if (rt->rank == 0)
        slc_log(SLC_LOG_INFO,
                "step %llu: steps take %.1f ms, %+.0f %% of the %.1f ms that plan %u predicted (compute %+.1f ms, "
                "transfers %+.1f ms, waiting %+.1f ms, outside of slots %+.1f ms): measuring and planning again",
                (unsigned long long)rt->step, 1e3 * step_s, 100 * (step_s / predicted->step_s - 1),
                1e3 * predicted->step_s, rt->current.number, 1e3 * miss.compute_s, 1e3 * miss.transfer_s,
                1e3 * miss.waiting_s, 1e3 * miss.outside_s);
    rt->planning.replan_due = true;
    rt->planning.due_from = rt->current.steps;
    if (rt->planning.held) rt->planning.drifted = rt->step;
    rt->measure->link_known = false;
    rt->planning.unproven = true;
    rt->planning.held = false;
    rt->planning.apart = 0;
    return SLUICE_OK;
}

/* Accepts steps that differ from their prediction. The plan that followed a drift misses as well, so it is the model of
 * times that is wrong, and planning again would not mend it: from here on steps are compared with these. */
static void accept_steps(sluice_runtime *rt, double step_s)
{
    const double predicted_s = rt->current.predicted.step_s;
    rt->planning.apart = step_s / predicted_s;
    rt->planning.held = true;
    if (rt->rank == 0)
        slc_log(SLC_LOG_INFO,
                "steps take %.1f ms, %+.0f %% of the %.1f ms that plan %u predicted, though it was made from new "
                "times: later steps are compared with these",
                1e3 * step_s, 100 * (rt->planning.apart - 1), 1e3 * predicted_s, rt->current.number);
}

/* Compares, now and then, the steps with their prediction. All ranks decide by the slowest rank's steps. A run that is
 * about to end would gain little by another plan, and drifts are at least DRIFT_EVERY steps apart. A prediction that
 * never held is no drift: the first steps, from which it was made, were slower than those that follow. The prediction
 * is then made anew once, and a change that comes soon after is still noticed. */
static sluice_status notice_drift(sluice_runtime *rt)
{
    const double apart = rt->planning.apart > 0 ? rt->planning.apart : 1;
    const double expected_s = apart * rt->current.predicted.step_s;
    const bool first = rt->planning.unproven; /* look at a plan that followed a drift */
    if (!(expected_s > 0) || rt->current.steps % DRIFT_STEPS || slc_is_stage(&rt->stage)) return SLUICE_OK;
    if (!first && rt->planning.drifted && rt->step < rt->planning.drifted + DRIFT_EVERY) return SLUICE_OK;
    const bool worth = slc_runtime_steps_left(rt) >= WARM_UP_STEPS + MEASURED_AGAIN + DRIFT_STEPS,
               decides = rt->rank == 0;
    double found[] = {slc_kept_steps_median_s(&rt->measure->kept, DRIFT_STEPS - 1), decides ? rt->planning.drift : 0,
                      decides && worth};
    sluice_status status = slc_measure_slowest(rt, found, 3);
    if (status || !(found[0] > 0)) return status;
    rt->planning.unproven = false;
    if (fabs(found[0] / expected_s - 1) <= 0.01 * found[1]) {
        rt->planning.held = true;
        return SLUICE_OK;
    }
    if (!first) return found[2] > 0 ? measure_again(rt, found[0]) : SLUICE_OK;
    accept_steps(rt, found[0]);
    return SLUICE_OK;
}

/* ---- Depth ---- */

/* Returns true if the plan that runs was made from measured times of steps of another mean depth. *from is the depth
 * for which the plan was made, *to that of the steps. Probabilities and times are equal on all ranks, so all ranks find
 * the same. */
static bool depth_has_moved(const sluice_runtime *rt, double *from, double *to)
{
    if (!rt->current.measured || slc_is_stage(&rt->stage)) return false;
    *from = *to = 0;
    for (uint32_t l = 0; l < rt->job.layer_count; l++) *to += rt->drawn.keeps[l];
    *from = slc_times_depth(&rt->job, &rt->current.times);
    return slc_depth_moved(&rt->job, *from, *to);
}

static void plan_for_depth(sluice_runtime *rt, double from, double to)
{
    if (rt->rank == 0)
        slc_log(SLC_LOG_INFO,
                "step %llu: steps keep %.2f of %u layers in the mean, and plan %u was made for %.2f: measuring and "
                "planning again",
                (unsigned long long)rt->step, to, rt->job.layer_count, rt->current.number, from);
    rt->planning.replan_due = true;
    rt->planning.due_from = rt->current.steps;
}

sluice_status slc_engine_after_step(sluice_runtime *rt)
{
    double from, to;
    rt->current.steps++;
    if (rt->trials.on) return slc_trials_after_step(rt);
    if (!rt->planning.replan_due && depth_has_moved(rt, &from, &to)) {
        plan_for_depth(rt, from, to);
        return SLUICE_OK;
    }
    /* Steps that draw their layers are expected to differ. */
    if (!rt->planning.replan_due) return rt->current.times.keeps ? SLUICE_OK : notice_drift(rt);
    const uint64_t steps = rt->current.steps - rt->planning.due_from;
    if (steps == WARM_UP_STEPS) {
        sluice_status status = slc_runtime_drain(rt);
        if (!status) slc_measure_reset(rt->measure, &rt->job);
        return status;
    }
    const uint64_t usual = rt->current.measured ? MEASURED_AGAIN : MEASURED_STEPS,
                   measured = usual + (slc_measure_lacks_slots(rt->measure, &rt->job) ? MEASURED_MORE : 0);
    /* Layers that an exchange has left out may differ from rank to rank for long: slc_engine_add_choices keeps them as
     * they are. */
    if (steps < WARM_UP_STEPS + measured || rt->compression.in_interval) return SLUICE_OK;
    rt->planning.replan_due = false;
    slc_plan_request request = slc_engine_standing_request(rt);
    sluice_status status = replan(rt, &request);
    if (!status) return slc_trials_begin(rt);
    if (!goes_on(rt)) return status;
    if (rt->rank == 0)
        slc_log(SLC_LOG_WARN, "re-planning failed, training goes on with plan %u: %s", rt->current.number,
                sluice_last_error());
    return SLUICE_OK;
}

/* text NULL: *kept stays as it is. */
static sluice_status replace_text(char **kept, const char *text)
{
    char *copy = text ? strdup(text) : NULL;
    if (text && !copy) return slc_error(SLUICE_ERR_MEMORY, "what a re-plan asked for");
    if (!text) return SLUICE_OK;
    free(*kept);
    *kept = copy;
    return SLUICE_OK;
}

sluice_status sluice_runtime_replan(sluice_runtime *rt, const char *strategy, const char *schedule, uint64_t budget)
{
    SLC_HOLD_FLOATS;
    sluice_status status = slc_runtime_require(rt, true, "replan");
    if (status) return status;
    if (rt->mode != SLC_IDLE) return slc_error(SLUICE_ERR_ORDER, "replan: must be called between steps");
    status = slc_runtime_require_no_stages(rt, "replan");
    if (!status) status = slc_phase_require_equal(rt, "replan");
    if (status) return status;
    slc_plan_request request = {.strategy = strategy ? strategy : rt->planning.strategy,
                                .schedule = schedule ? schedule : rt->planning.schedule,
                                .budget_bytes = budget ? budget : rt->current.budget_bytes};
    status = slc_engine_least_budget(rt, &request.budget_bytes);
    if (!status) status = slc_phase_check_plans(rt, &request);
    if (!status) status = replan(rt, &request);
    if (status) return status;
    slc_shapes_forget(rt);
    rt->planning.replan_due = false;
    status = replace_text(&rt->planning.strategy_now, strategy);
    return slc_runtime_fail(rt, status ? status : replace_text(&rt->planning.schedule_now, schedule));
}
