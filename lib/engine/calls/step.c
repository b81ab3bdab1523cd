/* A step or an evaluation as the program drives it: slots in the registered order, waits before them, posts after.
 * tests/engine/engine_test.c covers this file. */
#include "lib/base/numbers/floats.h"
#include "lib/base/clock.h"
#include "lib/base/sized.h"
#include "lib/base/status.h"
#include "lib/engine/check/check.h"
#include "lib/engine/measure/marks.h"
#include "lib/engine/measure/measure.h"
#include "lib/engine/onebit/onebit.h"
#include "lib/engine/onebit/phase.h"
#include "lib/engine/replan/replan.h"
#include "lib/engine/rows/look_up.h"
#include "lib/engine/runtime.h"
#include "lib/engine/step/agreement.h"
#include "lib/engine/step/drain.h"
#include "lib/engine/step/gradients.h"
#include "lib/engine/step/left_out.h"
#include "lib/engine/step/messages.h"
#include "lib/engine/step/pass.h"
#include "lib/engine/stages/stage_evaluation.h"
#include "lib/engine/stages/stage_report.h"
#include "lib/engine/step/stage_rows.h"
#include "lib/engine/stages/stages_agree.h"
#include "lib/engine/step/words.h"
#include "lib/plan/strategy_table.h"

#include <math.h>
#include <stdio.h>

static bool any_onebit(const sluice_runtime *rt)
{
    if (slc_is_stage(&rt->stage)) return slc_stages_exchange(rt);
    for (uint32_t u = 0; u < rt->job.unit_count; u++)
        if (slc_exchanges(rt->units[u].strategy)) return true;
    return false;
}

/* Begins a step of a compressed optimizer. Without onebit units no step is local, because an interval of local steps
 * would still be open when units become onebit. */
static void begin_compressed(sluice_runtime *rt, slc_step_state *step, const sluice_step_options *options)
{
    step->own_scale = options->gradient_scale == 0 ? 1.0 / step->micro_batches : options->gradient_scale * rt->replicas;
    step->own_factor = 1;
    if (!rt->compression.on) return;
    step->compressed = rt->onebit.phase(rt->onebit.context, step->step).compressed;
    step->mode = slc_phase_begin_step(rt, step, options->exchange || !any_onebit(rt));
    step->average_off = step->mode != SLC_STEP_AVERAGE;
    step->exchange_off = step->mode != SLC_STEP_EXCHANGE;
}

/* Returns true if updates multiply gradients by the scale of sums. If NCCL makes the sums, scaling them would take a
 * pass of its own after each collective. Sums in rank order are scaled where they are made, and so is every sum to
 * which the next micro-batch is added. */
static bool leaves_scale(const sluice_runtime *rt)
{
    return rt->config.sums == SLUICE_SUMS_NCCL && rt->replicas > 1 && !rt->job.each;
}

static uint64_t count_bytes_sent(const sluice_runtime *rt)
{
    return slc_comm_bytes_sent(rt->lane) + slc_stage_messages_bytes_sent(rt);
}

static sluice_status check_group_rates(const sluice_runtime *rt, const sluice_step_options *options)
{
    const uint32_t groups = rt->model.group_count;
    if (!options->group_rates) return SLUICE_OK;
    if (rt->compression.on)
        return slc_error(SLUICE_ERR_UNSUPPORTED,
                         "step_begin: group_rates: the optimizer %s has one rate for all parameters; leave them out",
                         rt->optimizer.name);
    if (options->group_count < groups)
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "step_begin: %llu group_rates, but a parameter is of group %u; give one for each group",
                         (unsigned long long)options->group_count, groups - 1);
    for (uint32_t g = 0; g < groups; g++)
        if (!isfinite(options->group_rates[g] * options->learning_rate))
            return slc_error(SLUICE_ERR_ARGUMENT, "step_begin: group_rates[%u] is %g; give finite numbers", g,
                             options->group_rates[g]);
    return SLUICE_OK;
}

/* Copies the rates of groups: updates of the step run when the caller's array may be gone. */
static void take_group_rates(const sluice_runtime *rt, slc_step_state *step, const sluice_step_options *options)
{
    step->has_group_rates = options->group_rates != NULL;
    for (uint32_t g = 0; step->has_group_rates && g < rt->model.group_count; g++)
        step->group_rates[g] = options->group_rates[g];
}

/* Returns true if the step runs less than its plan is for. Steps that draw their layers differ, but each is one of
 * those over which a plan for draws takes its mean. */
static bool is_partial(const sluice_runtime *rt, const slc_step_state *step)
{
    return (step->leaves_out && !rt->current.times.keeps) || step->micro_batches < rt->job.micro_batches;
}

/* Returns true if the step is no usual one. A step that draws its layers is a usual one, even while a first plan is
 * measured, if it runs all micro-batches. */
static bool is_unlike(const sluice_runtime *rt, const slc_step_state *step)
{
    return is_partial(rt, step) && !(rt->drawn.any && step->micro_batches == rt->job.micro_batches);
}

/* The length of the step's sequences as a share of the longest. */
static double extent_of(const sluice_runtime *rt, const sluice_step_options *options)
{
    if (options->extent > 0) return options->extent;
    return options->shape ? slc_shape_extent(rt, (uint32_t)options->shape) : 1;
}

/* All ranks turn to another shape together; a rank that does not ends the job with a line that names both calls. */
static sluice_status turn_to_shape(sluice_runtime *rt, const sluice_step_options *options)
{
    const uint64_t began_ns = slc_clock_ns(), shape = options->shape;
    sluice_status status = slc_shape_check(rt, shape);
    if (!status && !(options->extent >= 0 && options->extent <= 1))
        status = slc_error(SLUICE_ERR_ARGUMENT,
                           "step_begin: an extent of %g; give a share of the longest, up to 1, or 0", options->extent);
    if (status || !rt->model.last_shape || rt->compression.on || slc_is_stage(&rt->stage)) return status;
    const double extent = extent_of(rt, options);
    slc_measure_extent(rt->measure, extent);
    if (shape == rt->shapes.now) return SLUICE_OK;
    char call[64];
    snprintf(call, sizeof call, "step_begin with shape %llu", (unsigned long long)shape);
    status = slc_comm_meet(rt->comm, call, NULL);
    if (!status) status = slc_shape_turn_to(rt, (uint32_t)shape, extent);
    rt->shapes.took_s = slc_seconds(slc_clock_ns() - began_ns);
    return status;
}

sluice_status sluice_step_begin(sluice_runtime *rt, const sluice_step_options *given)
{
    sluice_step_options full = {0}, *options = &full;
    sluice_status status = slc_runtime_require_mode(rt, SLC_IDLE, "step_begin");
    if (!status) status = slc_sized_read("sluice_step_options", NULL, given, sizeof full, &full);
    if (status) return status;
    if (!given || !isfinite(options->learning_rate) || !isfinite(options->gradient_scale))
        return slc_error(SLUICE_ERR_ARGUMENT, "step_begin: learning_rate and gradient_scale must be finite numbers");
    status = check_group_rates(rt, options);
    if (!status) status = slc_left_out_check(rt, options);
    if (status) return status;
    if (options->micro_batches > rt->config.micro_batches)
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "step_begin: %u micro_batches, but the config has %u; the config's are the most of any step",
                         options->micro_batches, rt->config.micro_batches);
    const uint32_t micro_batches = options->micro_batches ? options->micro_batches : rt->config.micro_batches;
    if (micro_batches < rt->config.micro_batches && slc_is_stage(&rt->stage))
        return slc_error(SLUICE_ERR_UNSUPPORTED,
                         "step_begin: %u of %u micro_batches: in a pipeline each step runs all of them; leave it 0",
                         micro_batches, rt->config.micro_batches);

    status = turn_to_shape(rt, options);
    if (status) return status;

    slc_pass *pass = &rt->train;
    status = slc_check_call(rt, "step_begin", NULL, options);
    const uint64_t came_ns = slc_clock_ns();
    if (!status) status = slc_pass_settle(rt, pass);
    if (status) return slc_runtime_fail(rt, status);
    rt->measure->settled_s += slc_seconds(slc_clock_ns() - came_ns);
    slc_step_state *step = &rt->steps[pass->parity ^ 1];
    double scale = options->gradient_scale;
    if (scale == 0) scale = 1.0 / ((double)rt->replicas * micro_batches);
    *step = (slc_step_state){.norms = step->norms,
                             .group_rates = step->group_rates,
                             .left_out = step->left_out,
                             .updates = step->updates,
                             .ahead = step->ahead,
                             .step = rt->step + 1,
                             .started_ns = slc_clock_ns(),
                             .bytes_sent_before = count_bytes_sent(rt),
                             .micro_batches = micro_batches,
                             .learning_rate = options->learning_rate,
                             .scale = leaves_scale(rt) ? 1 : (float)scale,
                             .left_scale = leaves_scale(rt) ? scale : 1,
                             .factor = 1,
                             .bad_param = SLC_NONE};
    take_group_rates(rt, step, options);
    slc_left_out_take(rt, step, options);
    begin_compressed(rt, step, options);
    slc_look_ups_forget(rt);
    slc_marks_begin_step(rt);
    slc_pass_note_launches(rt, pass, step, extent_of(rt, options));
    status = slc_onebit_keep(rt, step);
    if (!status) status = slc_pass_words_begin(rt, step);
    if (!status) status = slc_pass_begin(rt, pass);
    if (!status) status = slc_pass_leave_out(rt, pass, &step->exposed_s);
    if (status) return slc_runtime_fail(rt, status);
    if (is_unlike(rt, step)) slc_measure_unlike(rt->measure);
    rt->mode = SLC_IN_STEP;
    return SLUICE_OK;
}

static slc_pass *running(sluice_runtime *rt)
{
    return rt->mode == SLC_IN_EVALUATION ? &rt->evaluate : &rt->train;
}

/* The calls that bracket slots. */
typedef enum { FORWARD_BEGIN, FORWARD_END, RECOMPUTE_BEGIN, RECOMPUTE_END, BACKWARD_BEGIN, BACKWARD_END } slot_call;

static const char *call_name(slot_call call)
{
    static const char *const names[] = {"forward_begin", "forward_end",    "recompute_begin",
                                        "recompute_end", "backward_begin", "backward_end"};
    return names[call];
}

static const slc_item *next_slot(sluice_runtime *rt)
{
    const slc_pass *pass = running(rt);
    return &pass->program->items[pass->slots[rt->at.cursor]];
}

/* The next slot's micro-batch as the program counts them. */
static uint32_t next_micro_batch(sluice_runtime *rt)
{
    const uint32_t micro_batch = next_slot(rt)->micro_batch;
    if (rt->mode == SLC_IN_EVALUATION) return micro_batch;
    return slc_step_ordinal(&rt->steps[rt->train.parity], rt->job.micro_batches, micro_batch);
}

static slot_call expected_call(sluice_runtime *rt)
{
    const slc_item *item = next_slot(rt);
    if (slc_slot_is_forward(&rt->job, item->slot)) return rt->at.state == SLC_IN_SLOT ? FORWARD_END : FORWARD_BEGIN;
    switch (rt->at.state) {
    case SLC_BETWEEN_SLOTS:
        return rt->current.plan->recompute[slc_slot_layer(&rt->job, item->slot)] ? RECOMPUTE_BEGIN : BACKWARD_BEGIN;
    case SLC_RECOMPUTING: return RECOMPUTE_END;
    case SLC_RECOMPUTED: return BACKWARD_BEGIN;
    case SLC_IN_SLOT: break;
    }
    return BACKWARD_END;
}

/* ORDER unless `call` of `layer` comes next. */
static sluice_status check_order(sluice_layer *layer, slot_call call)
{
    sluice_runtime *rt = layer->rt;
    if (rt->mode == SLC_IDLE)
        return slc_error(SLUICE_ERR_ORDER, "layer \"%s\": %s outside of a step; call step_begin first", layer->name,
                         call_name(call));
    if (rt->at.cursor >= running(rt)->slot_count)
        return slc_error(SLUICE_ERR_ORDER, "layer \"%s\": %s after the step's last backward; call step_end",
                         layer->name, call_name(call));
    const slc_item *item = next_slot(rt);
    slot_call expected = expected_call(rt);
    uint32_t at = slc_slot_layer(&rt->job, item->slot);
    if (at == layer->index && expected == call) return SLUICE_OK;
    bool recompute = expected == RECOMPUTE_BEGIN || call == RECOMPUTE_BEGIN;
    return slc_error(SLUICE_ERR_ORDER, "layer \"%s\": %s called where %s of \"%s\" must come (micro-batch %u)%s",
                     layer->name, call_name(call), call_name(expected), rt->model.layers[at]->name,
                     next_micro_batch(rt),
                     !sluice_layer_runs(layer) ? "; this step leaves the layer out, as sluice_layer_runs says"
                     : recompute               ? "; ask sluice_layer_recomputes which layers run their forward again"
                                               : "");
}

static void make_valid(sluice_runtime *rt, const sluice_layer *layer, const slc_item *slot, bool gradients)
{
    for (uint32_t i = 0; i < layer->unit_count; i++) {
        uint32_t u = layer->units[i];
        slc_unit_state *unit = &rt->units[u];
        const slc_unit *of = &rt->job.units[u];
        slc_window window;
        unit->now = unit->value;
        for (uint32_t w = 0; !unit->value && slc_unit_window(&rt->job, of, true, w, &window); w++)
            if (window.first_slot <= slot->slot && slot->slot <= window.last_slot)
                unit->now = unit->gathered[slc_gathered_number(&rt->job, of, slot->micro_batch, w)];
        unit->gradient_now = gradients ? unit->gradient : NULL;
    }
}

static void make_invalid(sluice_runtime *rt, const sluice_layer *layer)
{
    for (uint32_t i = 0; i < layer->unit_count; i++) {
        rt->units[layer->units[i]].now = NULL;
        rt->units[layer->units[i]].gradient_now = NULL;
    }
}

/* Points a stage's activations at their places for the slot's micro-batch. */
static void find_activations(sluice_runtime *rt, const slc_item *slot)
{
    const slc_stage *stage = &rt->stage;
    if (!slc_is_stage(stage)) return;
    for (uint32_t i = stage->first_life[slot->slot]; i < stage->first_life[slot->slot + 1]; i++) {
        const uint32_t life = stage->lives[i];
        if (slc_turn_has(&rt->job.turns[life], slot->micro_batch))
            rt->model.activations[stage->now->own.activations[life]]->data = stage->places[life];
    }
}

static sluice_status require_layer(sluice_layer *layer, slot_call call)
{
    if (!layer) return slc_error(SLUICE_ERR_ARGUMENT, "%s: no layer given", call_name(call));
    sluice_status status = slc_runtime_require(layer->rt, true, call_name(call));
    if (!status && !sluice_layer_here(layer))
        status = slc_runtime_fail(layer->rt,
                                  slc_error(SLUICE_ERR_ORDER,
                                            "layer \"%s\": %s, but this rank does not hold it: in a pipeline run what "
                                            "sluice_step_next says",
                                            layer->name, call_name(call)));
    slc_comm_call(layer->rt->comm, call_name(call), layer->name);
    return status;
}

/* A slot opens once, with its recomputing if it has one. */
static sluice_status slot_begin(sluice_layer *layer, slot_call call)
{
    sluice_status status = require_layer(layer, call);
    if (status) return status;
    sluice_runtime *rt = layer->rt;
    /* An evaluation may run its forwards again and again. */
    bool evaluating = rt->mode == SLC_IN_EVALUATION;
    if (evaluating && rt->at.cursor == rt->evaluate.slot_count) {
        status = slc_look_ups_check(rt, 0);
        if (!status) status = slc_pass_begin(rt, &rt->evaluate);
    }
    if (!status) status = check_order(layer, call);
    slc_pass *pass = running(rt);
    if (!status && !evaluating && next_slot(rt)->slot == 0) status = slc_look_ups_check(rt, next_micro_batch(rt));
    bool opens = rt->at.state == SLC_BETWEEN_SLOTS;
    if (!status && opens)
        status = slc_pass_slot_begin(rt, pass, evaluating ? NULL : &rt->steps[pass->parity].exposed_s);
    if (status) return slc_runtime_fail(rt, status);
    const slc_item *item = next_slot(rt);
    if (evaluating) status = slc_stage_evaluation_receive(rt, item);
    if (status) return slc_runtime_fail(rt, status);
    if (opens && !evaluating) slc_measure_slot_begin(rt->measure);
    if (opens) find_activations(rt, item);
    make_valid(rt, layer, item, call == BACKWARD_BEGIN);
    rt->at.state = call == RECOMPUTE_BEGIN ? SLC_RECOMPUTING : SLC_IN_SLOT;
    rt->at.layer = layer;
    rt->at.direction = call == BACKWARD_BEGIN ? SLUICE_BACKWARD : SLUICE_FORWARD;
    rt->at.slot = item->slot;
    if (call == BACKWARD_BEGIN) status = slc_gradients_begin(rt, layer, item, next_micro_batch(rt));
    if (!status) status = slc_stage_rows_open(rt, layer, item, call == BACKWARD_BEGIN);
    if (!status) status = slc_check_slot_begin(rt, item, next_micro_batch(rt));
    return slc_runtime_fail(rt, status);
}

/* Waits until a save has written what the updates after this slot change. They follow the backward slots of the last
 * micro-batch. */
static void wait_for_writer(sluice_runtime *rt, const slc_pass *pass, const slc_item *item, slot_call call)
{
    if (call == BACKWARD_END && !pass->evaluate && item->micro_batch + 1 == rt->job.micro_batches)
        slc_writer_wait(&rt->writer, item->slot, rt->comm);
}

static sluice_status slot_end(sluice_layer *layer, slot_call call)
{
    sluice_status status = require_layer(layer, call);
    if (status) return status;
    sluice_runtime *rt = layer->rt;
    status = check_order(layer, call);
    if (status) return slc_runtime_fail(rt, status);
    slc_pass *pass = running(rt);
    const slc_item *item = next_slot(rt);
    status = slc_check_slot_end(rt);
    if (!status && call == BACKWARD_END) status = slc_gradients_end(rt, layer, item, next_micro_batch(rt));
    if (!status && pass->evaluate) status = slc_stage_evaluation_send(rt, item);
    if (call == RECOMPUTE_END)
        slc_pass_recomputed(rt, pass);
    else if (!pass->evaluate && !rt->marks)
        slc_measure_slot_end(rt->measure, item->slot);
    wait_for_writer(rt, pass, item, call);
    make_invalid(rt, layer);
    slc_stage_rows_close(rt);
    rt->at.layer = NULL;
    rt->at.state = call == RECOMPUTE_END ? SLC_RECOMPUTED : SLC_BETWEEN_SLOTS;
    if (!status && call != RECOMPUTE_END) status = slc_pass_slot_end(rt, pass);
    if (!status && call != RECOMPUTE_END && !pass->evaluate)
        status = slc_pass_leave_out(rt, pass, &rt->steps[pass->parity].exposed_s);
    if (pass->evaluate && rt->at.cursor == pass->slot_count) {
        pass->has_previous = true;
        slc_look_ups_forget(rt);
    }
    return slc_runtime_fail(rt, status);
}

sluice_status sluice_forward_begin(sluice_layer *layer)
{
    return slot_begin(layer, FORWARD_BEGIN);
}

sluice_status sluice_forward_end(sluice_layer *layer)
{
    return slot_end(layer, FORWARD_END);
}

sluice_status sluice_recompute_begin(sluice_layer *layer)
{
    return slot_begin(layer, RECOMPUTE_BEGIN);
}

sluice_status sluice_recompute_end(sluice_layer *layer)
{
    return slot_end(layer, RECOMPUTE_END);
}

sluice_status sluice_backward_begin(sluice_layer *layer)
{
    return slot_begin(layer, BACKWARD_BEGIN);
}

sluice_status sluice_backward_end(sluice_layer *layer)
{
    return slot_end(layer, BACKWARD_END);
}

static sluice_task_kind task_of(slot_call call)
{
    return call == FORWARD_BEGIN     ? SLUICE_TASK_FORWARD
           : call == RECOMPUTE_BEGIN ? SLUICE_TASK_RECOMPUTE
                                     : SLUICE_TASK_BACKWARD;
}

sluice_status sluice_step_next(sluice_runtime *rt, sluice_task *task)
{
    sluice_status status = slc_runtime_require_mode(rt, SLC_IN_STEP, "step_next");
    if (!status && !task) status = slc_error(SLUICE_ERR_ARGUMENT, "step_next: no place for the result");
    if (!status) status = slc_sized_check("sluice_task", NULL, task, sizeof *task);
    if (status) return status;
    sluice_task next = {.kind = SLUICE_TASK_END, .micro_batch = rt->steps[rt->train.parity].micro_batches};
    if (rt->at.cursor < running(rt)->slot_count) {
        const slc_item *item = next_slot(rt);
        const slot_call call = expected_call(rt);
        sluice_layer *layer = rt->model.layers[slc_slot_layer(&rt->job, item->slot)];
        if (rt->at.state == SLC_IN_SLOT || rt->at.state == SLC_RECOMPUTING)
            return slc_error(SLUICE_ERR_ORDER, "step_next: layer \"%s\" is in its slot; call %s of it first",
                             layer->name, call_name(call));
        next = (sluice_task){.kind = task_of(call), .micro_batch = next_micro_batch(rt), .layer = layer};
    }
    slc_sized_write(&next, sizeof next, task);
    return SLUICE_OK;
}

static sluice_step_report make_report(const sluice_runtime *rt, const slc_step_state *step)
{
    return (sluice_step_report){
        .step = step->step,
        .step_s = slc_seconds(slc_clock_ns() - step->started_ns),
        .exposed_s = step->exposed_s + slc_stage_idle_s(&step->stage),
        .gradient_norm = slc_measures_norm(rt) ? slc_norm_result(step->bins) * fabs(step->left_scale) : NAN,
        .compressed = step->compressed,
        .own_norm = rt->config.clip > 0 && any_onebit(rt) && step->mode != SLC_STEP_AVERAGE ? slc_own_norm(step) : NAN,
        .skipped = step->skip,
        .plan = rt->current.number,
        .predicted_step_s = is_partial(rt, step) ? 0 : rt->current.predicted.step_s,
        .peak_bytes = slc_arena_peak(rt->memory.arena),
        .bytes_sent = count_bytes_sent(rt) - step->bytes_sent_before};
}

/* A new phase or a re-plan follows a step. *planning_s: how long planning and moving over took. */
static sluice_status plan_after(sluice_runtime *rt, const slc_step_state *step, double *planning_s)
{
    const uint32_t plan = rt->current.number;
    const uint64_t ended_ns = slc_clock_ns();
    sluice_status status = step->skip ? SLUICE_OK : slc_phase_end_step(rt, step->step);
    const uint64_t phase_ns = slc_clock_ns();
    if (rt->current.number != plan) *planning_s = slc_seconds(phase_ns - ended_ns);
    if (status || rt->current.number != plan) return status; /* the plan of a new phase has had no step yet */
    const bool due = rt->planning.replan_due;
    status = slc_engine_after_step(rt);
    if ((due && !rt->planning.replan_due) || rt->current.number != plan)
        *planning_s = slc_seconds(slc_clock_ns() - phase_ns);
    if (!status && rt->current.number == plan) slc_check_move(rt);
    return status;
}

sluice_status sluice_runtime_expect_launches(sluice_runtime *rt)
{
    sluice_status status = slc_runtime_require(rt, true, "expect_launches");
    if (status) return status;
    if (rt->mode == SLC_IDLE)
        return slc_error(SLUICE_ERR_ORDER, "expect_launches: must be called in a step or an evaluation, before the "
                                           "slots that launch kernels for the first time");
    slc_pass_expect_launches(running(rt), rt->mode == SLC_IN_EVALUATION && rt->at.cursor == rt->evaluate.slot_count);
    return SLUICE_OK;
}

sluice_status sluice_step_end(sluice_runtime *rt, sluice_step_report *report)
{
    SLC_HOLD_FLOATS;
    sluice_status status = slc_runtime_require_mode(rt, SLC_IN_STEP, "step_end");
    if (!status && report) status = slc_sized_check("sluice_step_report", NULL, report, sizeof *report);
    if (status) return status;
    slc_pass *pass = &rt->train;
    if (rt->at.cursor != pass->slot_count) {
        const slc_item *item = next_slot(rt);
        return slc_runtime_fail(
            rt, slc_error(SLUICE_ERR_ORDER, "step_end: the %s of layer \"%s\" has not %s (micro-batch %u)",
                          slc_slot_is_forward(&rt->job, item->slot) ? "forward" : "backward",
                          rt->model.layers[slc_slot_layer(&rt->job, item->slot)]->name,
                          rt->at.state == SLC_BETWEEN_SLOTS ? "run" : "ended", next_micro_batch(rt)));
    }
    slc_step_state *step = &rt->steps[pass->parity];
    status = slc_stages_agree(rt, pass, step);
    if (!status) status = slc_pass_wait(rt, pass, rt->agreement.item, &step->exposed_s);
    if (status) return slc_runtime_fail(rt, status);
    rt->mode = SLC_IDLE;
    slc_step_state *agreed = slc_agrees_late(rt) ? &rt->steps[pass->parity ^ 1] : step;
    if (agreed == step || pass->has_previous) {
        slc_pass_words_learn(agreed);
        status = slc_engine_check_finite(rt, agreed);
    }
    slc_marks_read(rt); /* now that it is known which updates were skipped */
    if (status) return slc_runtime_fail(rt, status);
    pass->has_previous = true;
    if (!step->skip) rt->step = step->step;
    if (!step->skip) slc_left_out_count(rt, step);
    if (!step->skip) slc_phase_note_replicas(rt, step);
    step->stage.slots_s = rt->measure->step_compute_s;
    slc_stage_report_note(rt, step);
    slc_measure_step_end(rt);
    sluice_step_report made = make_report(rt, step);
    status = slc_runtime_fail(rt, slc_check_lives(rt));
    slc_writer_wait(&rt->writer, SLC_NONE, rt->comm); /* a new plan moves everything */
    if (!status) status = plan_after(rt, step, &made.planning_s);
    made.planning_s += rt->shapes.took_s;
    rt->shapes.took_s = 0;
    slc_measure_step_begin(rt);
    if (report) slc_sized_write(&made, sizeof made, report);
    return status;
}

sluice_status sluice_runtime_sync(sluice_runtime *rt)
{
    SLC_HOLD_FLOATS;
    sluice_status status = slc_runtime_require_mode(rt, SLC_IDLE, "sync");
    if (!status) status = slc_comm_meet(rt->comm, "sync", NULL);
    return status ? status : slc_runtime_drain(rt);
}

sluice_status sluice_evaluate_begin(sluice_runtime *rt)
{
    sluice_status status = slc_runtime_require_mode(rt, SLC_IDLE, "evaluate_begin");
    if (!status) status = slc_check_call(rt, "evaluate_begin", NULL, NULL);
    if (!status) status = slc_phase_require_equal(rt, "evaluate_begin");
    if (!status) status = slc_comm_meet(rt->comm, "evaluate_begin", NULL);
    if (!status) status = slc_runtime_drain(rt);
    if (!status) status = slc_shape_turn_to(rt, 0, 0);
    if (status) return status;
    rt->evaluate.has_previous = false;
    slc_look_ups_forget(rt);
    rt->at.cursor = rt->evaluate.slot_count; /* the first forward begins the first pass */
    rt->mode = SLC_IN_EVALUATION;
    return SLUICE_OK;
}

sluice_status sluice_evaluate_end(sluice_runtime *rt)
{
    sluice_status status = slc_runtime_require_mode(rt, SLC_IN_EVALUATION, "evaluate_end");
    if (status) return status;
    if (rt->at.cursor != rt->evaluate.slot_count)
        return slc_runtime_fail(rt, slc_error(SLUICE_ERR_ORDER, "evaluate_end: inside a forward; run it to its end"));
    if (rt->evaluate.has_previous) status = slc_pass_wait(rt, &rt->evaluate, SLC_NONE, NULL);
    if (!status && slc_is_stage(&rt->stage)) status = slc_stage_messages_finish(rt);
    rt->mode = SLC_IDLE;
    rt->train.has_previous = false;
    return slc_runtime_fail(rt, status);
}

sluice_status sluice_runtime_fail(sluice_runtime *rt, sluice_status status, const char *line)
{
    if (!rt || status >= SLUICE_OK)
        return slc_error(SLUICE_ERR_ARGUMENT, "runtime_fail: a runtime and the status of an error");
    if (line) slc_error(status, "%s", line);
    return slc_runtime_fail(rt, status);
}
