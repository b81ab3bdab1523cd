/* Runs a program on two lanes. The caller's thread is the compute lane: it waits for the operations that a slot needs,
 * and between slots runs the updates that the plan puts there. Operations go to the communication thread in the plan's
 * order, each with the counts of finished items of either lane at which it may start. Both lanes run in order, so two
 * counters say everything. Late operations belong to the step before: a pass with none before it leaves them out, and a
 * drain runs them alone; a wait for an item that does not run is over. */
#include "lib/engine/step/pass.h"

#include "lib/base/clock.h"
#include "lib/base/status.h"
#include "lib/engine/measure/marks.h"
#include "lib/engine/measure/measure.h"
#include "lib/engine/rows/look_up.h"
#include "lib/engine/step/claims.h"
#include "lib/engine/step/gradients.h"
#include "lib/engine/step/left_out.h"
#include "lib/engine/step/messages.h"
#include "lib/engine/step/operations.h"
#include "lib/engine/step/progress.h"
#include "lib/engine/step/stage_rows.h"
#include "lib/engine/runtime.h"
#include "lib/engine/step/update.h"
#include "lib/engine/step/waits.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The most operations in flight (the queue of the communication thread holds more), and the most that are submitted at
 * a time. */
enum { IN_FLIGHT = 2048, BATCH = 16 };

static sluice_status list_claims(const slc_program *program, bool begin, uint32_t **list, uint32_t **first)
{
    *list = calloc(program->claim_count + 1, sizeof **list);
    *first = calloc(program->item_count + 2, sizeof **first);
    if (!*list || !*first) return slc_error(SLUICE_ERR_MEMORY, "claims of a program");
    for (uint32_t c = 0; c < program->claim_count; c++)
        (*first)[(begin ? program->claims[c].from : program->claims[c].to) + 2]++;
    for (uint32_t i = 2; i <= program->item_count + 1; i++) (*first)[i] += (*first)[i - 1];
    for (uint32_t c = 0; c < program->claim_count; c++)
        (*list)[(*first)[(begin ? program->claims[c].from : program->claims[c].to) + 1]++] = c;
    return SLUICE_OK;
}

/* The name says "evaluation", so that a rank that evaluates while others train learns it from the first operation that
 * differs. */
static char *name_operation(const sluice_runtime *rt, const slc_item *item, bool evaluate)
{
    const char *unit = item->unit == SLC_NONE ? "all layers" : rt->job.units[item->unit].name;
    char text[256];
    snprintf(text, sizeof text, "%s of \"%.200s\"%s", slc_item_kind_name(item->kind), unit,
             evaluate ? ", in an evaluation" : "");
    return strdup(text);
}

static sluice_status make_contexts(sluice_runtime *rt, slc_pass *pass)
{
    const slc_lane_order *all = &pass->order[SLC_PASS_WHOLE];
    pass->what = calloc(all->count + 1, sizeof *pass->what);
    if (!pass->what) return slc_error(SLUICE_ERR_MEMORY, "operations");
    for (uint32_t p = 0; p < 2; p++) {
        pass->contexts[p] = calloc(all->count + 1, sizeof **pass->contexts);
        if (!pass->contexts[p]) return slc_error(SLUICE_ERR_MEMORY, "operations");
        for (uint32_t k = 0; k < all->count; k++) {
            uint32_t item = all->operations[k];
            uint32_t step = pass->program->items[item].late ? p ^ 1 : p;
            pass->contexts[p][k] = (slc_operation){.rt = rt,
                                                   .pass = pass,
                                                   .item = item,
                                                   .step = &rt->steps[step],
                                                   .of_rows = k && all->operations[k - 1] == item,
                                                   .goes_on = k + 1 < all->count && all->operations[k + 1] == item};
        }
    }
    for (uint32_t k = 0; k < all->count; k++) {
        pass->what[k] = name_operation(rt, &pass->program->items[all->operations[k]], pass->evaluate);
        if (!pass->what[k]) return slc_error(SLUICE_ERR_MEMORY, "operations");
    }
    return SLUICE_OK;
}

static bool runs_in(const slc_item *item, slc_pass_kind kind)
{
    return kind == SLC_PASS_WHOLE || item->late == (kind == SLC_PASS_DRAIN);
}

/* Returns the last reduction of a unit in a program; SLC_NONE: there is none. */
static uint32_t find_last_reduction(const slc_program *program, uint32_t unit)
{
    uint32_t last = SLC_NONE;
    for (uint32_t i = 0; i < program->item_count && unit != SLC_NONE; i++)
        if (slc_is_reduction(program->items[i].kind) && program->items[i].unit == unit) last = i;
    return last;
}

/* Lists the items of a program by lane, in their order. `twice` is the item that is two operations. */
static sluice_status order_lanes(const slc_program *program, slc_pass_kind kind, uint32_t twice, slc_lane_order *order)
{
    order->operations = calloc((size_t)program->item_count + 2, sizeof *order->operations);
    order->computed = calloc(program->item_count + 1, sizeof *order->computed);
    order->ordinal = calloc(program->item_count + 1, sizeof *order->ordinal);
    uint32_t sent[SLC_STAGE_CHANNELS_MAX] = {0};
    if (!order->operations || !order->computed || !order->ordinal) return slc_error(SLUICE_ERR_MEMORY, "program");
    for (uint32_t i = 0; i < program->item_count; i++) {
        const slc_item *item = &program->items[i];
        order->ordinal[i] = SLC_NONE;
        if (!runs_in(item, kind)) continue;
        if (slc_on_compute_lane(item)) {
            order->computed[order->ordinal[i] = order->computed_count++] = i;
            continue;
        }
        if (slc_is_message(item->kind)) {
            order->ordinal[i] = sent[item->index]++;
            continue;
        }
        order->operations[order->ordinal[i] = order->count++] = i;
        if (i == twice) order->operations[order->ordinal[i] = order->count++] = i;
        if (item->late) order->late_end = order->count;
    }
    return SLUICE_OK;
}

/* Marks, among the items of the compute lane that an item waits for, the last one: the lane runs in order, so the
 * others have ended before it. */
static void mark_awaited(const slc_program *program, const slc_item *item, const slc_lane_order *order, bool previous,
                         uint64_t *awaiting)
{
    uint32_t last = SLC_NONE;
    for (uint32_t a = 0; a < item->after_count; a++) {
        const uint32_t before = item->after[a].item;
        if (item->after[a].previous != previous || !slc_on_compute_lane(&program->items[before])) continue;
        if (order->ordinal[before] == SLC_NONE) continue;
        if (last == SLC_NONE || order->ordinal[before] > order->ordinal[last]) last = before;
    }
    if (last == SLC_NONE) return;
    awaiting[last] |= slc_is_message(item->kind) ? SLC_AWAITING_CHANNEL << item->index : SLC_AWAITING_OPERATION;
}

/* Finds the items of the compute lane at whose end the communication thread may have something to do. */
static sluice_status list_awaited(slc_pass *pass)
{
    const slc_program *program = pass->program;
    pass->awaiting = calloc((size_t)program->item_count + 1, sizeof *pass->awaiting);
    if (!pass->awaiting) return slc_error(SLUICE_ERR_MEMORY, "program");
    for (uint32_t i = 0; i < program->item_count; i++)
        for (int kind = 0; kind < SLC_PASS_KINDS && !slc_on_compute_lane(&program->items[i]); kind++)
            for (int previous = 0; previous < 2; previous++)
                mark_awaited(program, &program->items[i], &pass->order[kind], previous, pass->awaiting);
    return SLUICE_OK;
}

/* Updates of both lanes may run at once, which not every optimizer allows. */
static sluice_status check_lanes(const sluice_runtime *rt, const slc_program *program)
{
    for (uint32_t i = 0; !rt->optimizer.concurrent && i < program->item_count; i++)
        if (program->items[i].on_compute)
            return slc_error(SLUICE_ERR_FORMAT,
                             "plan item %u is an update on the compute lane, but optimizer %s may be called by one "
                             "thread at a time only",
                             i, rt->optimizer.name);
    return SLUICE_OK;
}

sluice_status slc_pass_init(sluice_runtime *rt, slc_pass *pass, const slc_program *program, bool evaluate)
{
    *pass = (slc_pass){.program = program, .evaluate = evaluate};
    pass->slots = calloc(program->item_count + 1, sizeof *pass->slots);
    pass->launched = calloc(rt->model.layer_count, sizeof *pass->launched);
    if (!pass->slots || !pass->launched) return slc_error(SLUICE_ERR_MEMORY, "program");
    for (uint32_t i = 0; i < program->item_count; i++)
        if (program->items[i].kind == SLC_ITEM_SLOT) pass->slots[pass->slot_count++] = i;
    sluice_status status = check_lanes(rt, program);
    for (int kind = 0; !status && kind < SLC_PASS_KINDS; kind++)
        status = order_lanes(program, (slc_pass_kind)kind, find_last_reduction(program, slc_stage_rows_table(rt)),
                             &pass->order[kind]);
    if (!status) status = list_awaited(pass);
    if (!status) status = list_claims(program, true, &pass->begins, &pass->begin_first);
    if (!status) status = list_claims(program, false, &pass->ends, &pass->end_first);
    if (!status) status = make_contexts(rt, pass);
    if (!status && slc_is_stage(&rt->stage)) status = slc_stage_messages_init(rt, pass);
    return status;
}

void slc_pass_fini(slc_pass *pass)
{
    for (uint32_t k = 0; pass->what && k < pass->order[SLC_PASS_WHOLE].count; k++) free(pass->what[k]);
    free(pass->what);
    free(pass->awaiting);
    free(pass->contexts[0]);
    free(pass->contexts[1]);
    free(pass->begins);
    free(pass->begin_first);
    free(pass->ends);
    free(pass->end_first);
    free(pass->slots);
    free(pass->launched);
    slc_stage_messages_fini(pass);
    for (int kind = 0; kind < SLC_PASS_KINDS; kind++) {
        free(pass->order[kind].operations);
        free(pass->order[kind].computed);
        free(pass->order[kind].ordinal);
    }
    *pass = (slc_pass){0};
}

static const slc_lane_order *running_order(const slc_pass *pass)
{
    return &pass->order[pass->kind[0]];
}

static bool later(uint32_t a, uint32_t b)
{
    return (int32_t)(a - b) > 0;
}

/* Makes operation number k of the running pass, with its waits. */
static sluice_status prepare_operation(sluice_runtime *rt, slc_pass *pass, uint32_t k, slc_op *op)
{
    const slc_lane_order *order = running_order(pass);
    const uint32_t item = order->operations[k], last = pass->order[SLC_PASS_WHOLE].ordinal[item];
    const uint32_t number = k + 1 < order->count && order->operations[k + 1] == item ? last - 1 : last;
    *op = (slc_op){.what = pass->what[number]};
    slc_operation *context = &pass->contexts[pass->parity][number];
    context->number = pass->number;
    context->recording = rt->recording;
    sluice_status status = slc_operation_fill(rt, pass, item, context, op);
    if (status) return status;
    if (slc_is_stage(&rt->stage)) {
        slc_stage_messages_let_wait(rt, pass, item, op);
        return SLUICE_OK;
    }
    for (uint32_t a = 0; a < pass->program->items[item].after_count; a++) {
        const slc_after *after = &pass->program->items[item].after[a];
        uint32_t value, lane = slc_on_compute_lane(&pass->program->items[after->item]) ? 0 : 1;
        if (!slc_pass_threshold(rt, pass, after, &value)) continue;
        if (op->wait[lane] && !later(value, op->wait_value[lane])) continue;
        op->wait[lane] = lane == 0 ? &rt->lanes.computed : slc_comm_completed(rt->lane);
        op->wait_events[lane] = lane == 0 ? &rt->lanes.events : NULL;
        op->wait_value[lane] = value;
    }
    return SLUICE_OK;
}

static sluice_status submit(sluice_runtime *rt, slc_pass *pass, uint32_t count)
{
    slc_op ops[BATCH];
    uint32_t index;
    for (uint32_t i = 0; i < count; i++) {
        sluice_status status = prepare_operation(rt, pass, pass->submitted + i, &ops[i]);
        if (status) return status;
    }
    sluice_status status = slc_comm_submit(rt->lane, ops, count, &index);
    if (status) return status;
    if (index != rt->lanes.next_operation)
        return slc_error(SLUICE_ERR_ORDER, "operation numbers are out of step (%u, expected %u)", index,
                         rt->lanes.next_operation);
    rt->lanes.next_operation += count;
    pass->submitted += count;
    return SLUICE_OK;
}

/* Submits operations of the running pass while there is room, and at least `at_least` of them. */
static sluice_status submit_what_fits(sluice_runtime *rt, slc_pass *pass, uint32_t at_least)
{
    uint32_t all = running_order(pass)->count;
    if (slc_is_stage(&rt->stage)) {
        sluice_status status = slc_stage_messages_submit(rt, pass, at_least == all ? pass->program->item_count : 0);
        if (status) return status;
    }
    while (pass->submitted < all) {
        uint32_t left = all - pass->submitted, count = left < BATCH ? left : BATCH;
        count = slc_look_ups_known(rt, pass->program, running_order(pass)->operations + pass->submitted, count);
        if (!count) break; /* only slots of the next micro-batch need more, and its rows are set before them */
        uint32_t room_from = rt->lanes.next_operation + count - IN_FLIGHT;
        if (pass->submitted >= at_least && !slc_gate_passed(slc_comm_completed(rt->lane), room_from)) break;
        sluice_status status = submit(rt, pass, count);
        if (status) return status;
    }
    return SLUICE_OK;
}

static void begin_pass(sluice_runtime *rt, slc_pass *pass, slc_pass_kind kind)
{
    pass->computed_base[1] = pass->computed_base[0];
    pass->operation_base[1] = pass->operation_base[0];
    pass->kind[1] = pass->kind[0];
    pass->computed_base[0] = rt->lanes.computed_posted;
    pass->operation_base[0] = rt->lanes.next_operation;
    if (slc_is_stage(&rt->stage)) slc_stage_messages_begin(rt, pass);
    pass->kind[0] = kind;
    pass->submitted = 0;
    pass->computed = 0;
    pass->quiet = 0;
    pass->number++;
    pass->parity ^= 1;
    rt->at.cursor = 0;
}

/* Notes the length of a step's sequences, as a share of the longest. */
static bool is_new_extent(slc_pass *pass, double extent)
{
    const uint32_t part = (uint32_t)lround(extent * (SLC_PASS_EXTENTS - 1));
    const uint64_t bit = 1ull << part % 64;
    const bool known = pass->extents[part / 64] & bit;
    pass->extents[part / 64] |= bit;
    return !known;
}

void slc_pass_note_launches(const sluice_runtime *rt, slc_pass *pass, const slc_step_state *step, double extent)
{
    bool any = is_new_extent(pass, extent);
    for (uint32_t l = 0; l < rt->model.layer_count; l++) {
        const bool first = !pass->launched[l] && !(step->leaves_out && step->left_out[l]);
        pass->launched[l] |= first;
        any |= first;
    }
    if (any) pass->launches_last = pass->number + 2;
}

void slc_pass_expect_launches(slc_pass *pass, bool next)
{
    const uint32_t last = pass->number + next;
    if (pass->launches_last < last) pass->launches_last = last;
}

sluice_status slc_pass_begin(sluice_runtime *rt, slc_pass *pass)
{
    begin_pass(rt, pass, pass->has_previous ? SLC_PASS_WHOLE : SLC_PASS_FIRST);
    return submit_what_fits(rt, pass, 0);
}

sluice_status slc_pass_go_on(sluice_runtime *rt, slc_pass *pass)
{
    return submit_what_fits(rt, pass, 0);
}

static sluice_status wait_for_count(sluice_runtime *rt, uint32_t count, double *exposed_s)
{
    if (slc_gate_passed(slc_comm_completed(rt->lane), count)) return slc_runtime_healthy(rt);
    uint64_t start = slc_clock_ns();
    sluice_status status = slc_comm_wait(rt->lane, count);
    /* On a device that runs ahead marks tell how long it has waited; this wait is the host's alone. */
    if (exposed_s && !rt->marks) *exposed_s += slc_seconds(slc_clock_ns() - start);
    return status;
}

sluice_status slc_pass_settle(sluice_runtime *rt, slc_pass *pass)
{
    if (!pass->has_previous) return SLUICE_OK;
    if (slc_is_stage(&rt->stage)) {
        sluice_status status = slc_stage_messages_settle(rt, pass);
        if (status) return status;
    }
    return wait_for_count(rt, pass->operation_base[0] + running_order(pass)->late_end, NULL);
}

/* Records the compute lane, in steps only; of an update, how many elements it has. */
static void record(sluice_runtime *rt, const slc_pass *pass, uint32_t item, slc_moment_kind kind)
{
    const slc_moment made = {.plan = rt->current.number, .pass = pass->number, .item = item, .kind = kind};
    if (pass->evaluate) return;
    const slc_item *of = &pass->program->items[item];
    if (rt->marks)
        slc_mark(rt, SLC_MOMENT_COMPUTE, made,
                 of->kind == SLC_ITEM_UPDATE
                     ? slc_run_elements(&rt->job.units[of->unit], of->first_block, of->block_count)
                     : 0);
    else
        slc_recording_put(rt->recording, SLC_MOMENT_COMPUTE, made);
}

/* Lets the compute stream wait for operations that are issued. */
static sluice_status wait_on_stream(sluice_runtime *rt, uint32_t count)
{
    return slc_comm_stream_wait(rt->lane, &rt->compute, count);
}

static bool waits_for_later_compute(const sluice_runtime *rt, const slc_pass *pass, const slc_item *item)
{
    for (uint32_t a = 0; a < item->after_count; a++) {
        uint32_t count;
        bool computed = slc_on_compute_lane(&pass->program->items[item->after[a].item]);
        if (computed && slc_pass_threshold(rt, pass, &item->after[a], &count) &&
            later(count, rt->lanes.computed_posted))
            return true;
    }
    return false;
}

/* True if this pass may launch kernels for the first time while collectives of a GPU's memory are under way. */
static bool launches_beside_others(const sluice_runtime *rt, const slc_pass *pass)
{
    return rt->size > 1 && slc_device_runs_ahead(rt->device) && slc_pass_is_new(pass);
}

/* While the compute lane is measured, or launches kernels for the first time, nothing runs next to it: this waits for
 * all operations that can end before the next item there does. */
static sluice_status wait_for_quiet(sluice_runtime *rt, slc_pass *pass, double *exposed_s)
{
    const slc_lane_order *order = running_order(pass);
    while (pass->quiet < order->count &&
           !waits_for_later_compute(rt, pass, &pass->program->items[order->operations[pass->quiet]]))
        pass->quiet++;
    const uint32_t count = pass->operation_base[0] + pass->quiet;
    sluice_status status = submit_what_fits(rt, pass, pass->quiet);
    if (!status) status = wait_for_count(rt, count, exposed_s);
    /* Operations that were submitted before the launches were expected are issued now, and may not be done. */
    if (!status && launches_beside_others(rt, pass)) return slc_comm_synchronize(rt->lane, count);
    return status ? status : wait_on_stream(rt, count);
}

static bool wants_quiet(const sluice_runtime *rt, const slc_pass *pass)
{
    return launches_beside_others(rt, pass) || (rt->planning.replan_due && !pass->evaluate);
}

/* Waits for what an item of the compute lane needs, and claims its memory. */
static sluice_status wait_for_item(sluice_runtime *rt, slc_pass *pass, uint32_t index, double *exposed_s)
{
    const slc_item *item = &pass->program->items[index];
    uint32_t count;
    sluice_status status = submit_what_fits(rt, pass, 0);
    for (uint32_t a = 0; !status && a < item->after_count; a++) {
        const slc_after *after = &item->after[a];
        const slc_item *before = &pass->program->items[after->item];
        if (slc_on_compute_lane(before) || !slc_pass_threshold(rt, pass, after, &count)) continue;
        if (slc_is_message(before->kind)) {
            if (!after->previous) status = slc_stage_messages_submit(rt, pass, after->item + 1);
            /* In an evaluation nobody asks for the time. */
            double *waited_s = exposed_s ? &rt->steps[pass->parity].stage.waited_s[before->index] : NULL;
            if (!status) status = slc_stage_messages_wait(rt, before->index, count, waited_s);
            continue;
        }
        if (!after->previous) status = submit_what_fits(rt, pass, running_order(pass)->ordinal[after->item] + 1);
        if (!status) status = wait_for_count(rt, count, exposed_s);
        if (!status) status = wait_on_stream(rt, count);
    }
    if (!status && wants_quiet(rt, pass)) status = wait_for_quiet(rt, pass, exposed_s);
    if (!status) status = slc_pass_claims(rt, pass, index, true);
    return status;
}

static sluice_status open_item(sluice_runtime *rt, slc_pass *pass, uint32_t index, double *exposed_s)
{
    record(rt, pass, index, SLC_MOMENT_WAITS);
    sluice_status status = wait_for_item(rt, pass, index, exposed_s);
    record(rt, pass, index, SLC_MOMENT_BEGINS);
    return status;
}

/* Wakes the communication thread if it may go on now that an item of the compute lane has ended: to wake it costs both
 * threads more than all else at the end of a slot. */
static void notify_awaiting(const sluice_runtime *rt, const slc_pass *pass, uint32_t index)
{
    uint64_t awaiting = pass->awaiting[index];
    if (awaiting & SLC_AWAITING_OPERATION) {
        slc_comm_notify(rt->comm);
        return;
    }
    for (uint32_t c = 0; awaiting; c++, awaiting >>= 1)
        if (awaiting & SLC_AWAITING_CHANNEL) slc_channel_notify(rt->stage.channels[c]);
}

/* Counts the next item of the compute lane as done. */
static sluice_status post_item(sluice_runtime *rt, slc_pass *pass, uint32_t index)
{
    sluice_status status = slc_lane_events_record(&rt->lanes.events, &rt->compute, rt->lanes.computed_posted);
    if (status) return status;
    pass->computed++;
    slc_gate_post(&rt->lanes.computed, ++rt->lanes.computed_posted);
    notify_awaiting(rt, pass, index);
    return submit_what_fits(rt, pass, 0);
}

static sluice_status close_item(sluice_runtime *rt, slc_pass *pass, uint32_t index)
{
    sluice_status status = slc_pass_claims(rt, pass, index, false);
    if (status) return status;
    record(rt, pass, index, SLC_MOMENT_ENDS);
    return post_item(rt, pass, index);
}

/* Goes past an update of the compute lane that its step leaves out. */
static sluice_status pass_update(sluice_runtime *rt, slc_pass *pass, uint32_t index, double *exposed_s)
{
    sluice_status status = wait_for_item(rt, pass, index, exposed_s);
    if (!status) status = slc_pass_claims(rt, pass, index, false);
    return status ? status : post_item(rt, pass, index);
}

static sluice_status run_update(sluice_runtime *rt, slc_pass *pass, uint32_t index, double *exposed_s)
{
    const slc_item *item = &pass->program->items[index];
    const slc_step_state *step = &rt->steps[item->late ? pass->parity ^ 1 : pass->parity];
    if (slc_left_out_item(rt, step, item)) return pass_update(rt, pass, index, exposed_s);
    sluice_status status = open_item(rt, pass, index, exposed_s);
    if (!status) status = slc_update_on_compute(rt, item, step);
    return status ? status : close_item(rt, pass, index);
}

/* Runs the updates on the compute lane that come before its next slot. */
static sluice_status run_updates(sluice_runtime *rt, slc_pass *pass, double *exposed_s)
{
    const slc_lane_order *order = running_order(pass);
    while (pass->computed < order->computed_count) {
        uint32_t index = order->computed[pass->computed];
        if (pass->program->items[index].kind == SLC_ITEM_SLOT) break;
        sluice_status status = run_update(rt, pass, index, exposed_s);
        if (status) return status;
    }
    return SLUICE_OK;
}

sluice_status slc_pass_slot_begin(sluice_runtime *rt, slc_pass *pass, double *exposed_s)
{
    sluice_status status = run_updates(rt, pass, exposed_s);
    return status ? status : open_item(rt, pass, pass->slots[rt->at.cursor], exposed_s);
}

void slc_pass_recomputed(sluice_runtime *rt, slc_pass *pass)
{
    const uint32_t index = pass->slots[rt->at.cursor];
    if (rt->marks)
        record(rt, pass, index, SLC_MOMENT_RECOMPUTED);
    else
        slc_measure_recompute(rt->measure, slc_slot_layer(&rt->job, pass->program->items[index].slot),
                              rt->measure->slot_began_ns);
}

sluice_status slc_pass_slot_end(sluice_runtime *rt, slc_pass *pass)
{
    sluice_status status = slc_progress_note(rt, pass);
    if (!status) status = close_item(rt, pass, pass->slots[rt->at.cursor]);
    rt->at.cursor += !status;
    slc_marks_make_room(rt);
    return status;
}

/* Makes the gradients of a left-out layer for the units that it shares with layers that run: it adds nothing to them.
 */
static sluice_status add_no_gradients(sluice_runtime *rt, const slc_item *slot, const slc_step_state *step)
{
    const uint32_t micro_batch = slc_step_ordinal(step, rt->job.micro_batches, slot->micro_batch);
    if (micro_batch == SLC_NONE || slc_slot_is_forward(&rt->job, slot->slot)) return SLUICE_OK;
    const sluice_layer *layer = rt->model.layers[slc_slot_layer(&rt->job, slot->slot)];
    sluice_status status = slc_gradients_begin(rt, layer, slot, micro_batch);
    if (!status) status = slc_gradients_end(rt, layer, slot, micro_batch);
    if (!status && slot->micro_batch + 1 == rt->job.micro_batches) slc_writer_wait(&rt->writer, slot->slot, rt->comm);
    return status;
}

sluice_status slc_pass_leave_out(sluice_runtime *rt, slc_pass *pass, double *exposed_s)
{
    sluice_status status = SLUICE_OK;
    const slc_step_state *step = &rt->steps[pass->parity];
    while (!status && rt->at.cursor < pass->slot_count) {
        const uint32_t index = pass->slots[rt->at.cursor];
        const slc_item *slot = &pass->program->items[index];
        if (!slc_left_out_item(rt, step, slot)) break;
        status = run_updates(rt, pass, exposed_s);
        if (!status) status = wait_for_item(rt, pass, index, exposed_s);
        if (!status) status = add_no_gradients(rt, slot, step);
        if (!status) status = slc_pass_claims(rt, pass, index, false);
        if (!status) status = post_item(rt, pass, index);
        rt->at.cursor += !status;
    }
    return status;
}

sluice_status slc_pass_drain(sluice_runtime *rt, slc_pass *pass)
{
    sluice_status status = SLUICE_OK;
    if (slc_pass_pending(pass)) {
        begin_pass(rt, pass, SLC_PASS_DRAIN);
        status = run_updates(rt, pass, NULL);
        if (!status) status = submit_what_fits(rt, pass, running_order(pass)->count);
        pass->has_previous = false;
    }
    if (!status) status = wait_for_count(rt, rt->lanes.next_operation, NULL);
    if (!status && slc_is_stage(&rt->stage)) status = slc_stage_messages_finish(rt);
    if (!status) status = slc_comm_synchronize(rt->lane, rt->lanes.next_operation);
    return status ? status : slc_comm_stream_synchronize(rt->lane, &rt->compute, rt->lanes.next_operation);
}

sluice_status slc_pass_wait_before(sluice_runtime *rt, slc_pass *pass, uint32_t item, double *exposed_s)
{
    const slc_lane_order *order = running_order(pass);
    sluice_status status = run_updates(rt, pass, exposed_s);
    if (!status) status = submit_what_fits(rt, pass, order->count);
    return status ? status : wait_for_count(rt, pass->operation_base[0] + order->ordinal[item], exposed_s);
}

sluice_status slc_pass_wait(sluice_runtime *rt, slc_pass *pass, uint32_t item, double *exposed_s)
{
    const slc_lane_order *order = running_order(pass);
    sluice_status status = run_updates(rt, pass, exposed_s);
    if (!status) status = submit_what_fits(rt, pass, order->count);
    if (status) return status;
    uint32_t count = pass->operation_base[0];
    if (item == SLC_NONE || order->ordinal[item] != SLC_NONE) {
        count = item == SLC_NONE ? rt->lanes.next_operation : count + order->ordinal[item] + 1;
        record(rt, pass, item, SLC_MOMENT_STEP_WAITS);
        status = wait_for_count(rt, count, exposed_s);
        if (!status) status = wait_on_stream(rt, count);
        record(rt, pass, item, SLC_MOMENT_STEP_WAITED);
    }
    if (!status) status = slc_comm_stream_synchronize(rt->lane, &rt->compute, count);
    if (status || !launches_beside_others(rt, pass)) return status;
    status = wait_for_count(rt, rt->lanes.next_operation, NULL);
    return status ? status : slc_comm_synchronize(rt->lane, rt->lanes.next_operation);
}
