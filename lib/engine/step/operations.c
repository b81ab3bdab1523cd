/* Tells the communication thread how to carry out each kind of operation: with which collective and buffers, and what
 * it runs when the operation starts (claims, updates) and when it is complete (inspection of reduced gradients,
 * releases).
 * tests/onebit/onebit_engine_test.c covers this file. */
#include "lib/engine/step/operations.h"

#include "lib/base/clock.h"
#include "lib/base/status.h"
#include "lib/engine/measure/marks.h"
#include "lib/engine/measure/measure.h"
#include "lib/engine/onebit/onebit.h"
#include "lib/engine/rows/look_up.h"
#include "lib/engine/runtime.h"
#include "lib/engine/step/agreement.h"
#include "lib/engine/step/claims.h"
#include "lib/engine/step/left_out.h"
#include "lib/engine/step/stage_rows.h"
#include "lib/engine/step/update.h"
#include "lib/engine/step/words.h"
#include "lib/plan/strategy_table.h"

#include <string.h>

/* The agreement's words are the norm's bins, then the number of reduced ranges that were not finite, and from
 * SLC_AGREEMENT_HEAD on the optimizer's norms. */
enum { NON_FINITE_WORD = SLC_NORM_BINS };
_Static_assert((int)NON_FINITE_WORD < (int)SLC_AGREEMENT_HEAD, "the agreement's head holds the bins and one word");

/* Notes for the agreement that an earlier exchange has overflowed, if one has, and forgets it. */
static void tell_overflow(slc_step_state *step, uint32_t *parameter)
{
    if (*parameter == SLC_NONE) return;
    step->non_finite++;
    if (*parameter < step->bad_param) step->bad_param = *parameter;
    *parameter = SLC_NONE;
}

/* Prepares the agreement on a device that runs ahead. Kernels have noted there what they found in gradients, but what
 * updates have found is still to be told. */
static sluice_status begin_ahead(sluice_runtime *rt, const slc_step_state *step)
{
    sluice_status status = SLUICE_OK;
    if (rt->compression.on)
        status = slc_step_words_tell(&rt->updates, step->ahead->words, rt->config.nan == SLUICE_NAN_STOP ? SLC_BADS : 0,
                                     rt->compression.bad);
    return status ? status : slc_pass_words_pack(rt, step);
}

sluice_status slc_agreement_begin(sluice_runtime *rt, slc_step_state *step)
{
    if (step->ahead) return begin_ahead(rt, step);
    for (int i = 0; rt->compression.on && rt->config.nan == SLUICE_NAN_STOP && i < SLC_BADS; i++)
        tell_overflow(step, &rt->compression.bad[i]);
    memset(rt->agreement.words, 0, 8 * slc_agreement_words(&rt->job));
    memcpy(rt->agreement.words, step->bins, sizeof step->bins);
    rt->agreement.words[NON_FINITE_WORD] = step->non_finite;
    slc_norms_pack(rt, rt->agreement.words + SLC_AGREEMENT_HEAD);
    return SLUICE_OK;
}

uint64_t slc_agreement_stage_words(const sluice_runtime *rt)
{
    return slc_agreement_words(&rt->job) + (rt->compression.on ? SLC_NORM_BINS : 0);
}

/* min(1, clip / (norm + 1e-6)), as in torch.nn.utils.clip_grad_norm_. */
static double clip_factor(double clip, double norm)
{
    double factor = clip / (norm + 1e-6);
    return factor < 1 ? factor : 1;
}

sluice_status slc_agreement_end(sluice_runtime *rt, slc_step_state *step)
{
    memcpy(step->bins, rt->agreement.words, sizeof step->bins);
    step->non_finite = rt->agreement.words[NON_FINITE_WORD];
    /* Without NAN_SKIP updates do not wait for the agreement: the compute lane may read `skip` at this moment. */
    if (rt->config.nan == SLUICE_NAN_SKIP) step->skip = step->non_finite;
    slc_norms_unpack(rt, rt->agreement.words + SLC_AGREEMENT_HEAD, step);
    step->exchange_off |= step->skip;
    if (rt->config.clip > 0 && !step->non_finite) {
        step->factor = clip_factor(rt->config.clip, slc_norm_result(step->bins));
        step->own_factor = clip_factor(rt->config.clip, slc_own_norm(step));
    }
    return step->non_finite ? SLUICE_OK : slc_norms_tell(rt, step, step->norms);
}

static const slc_item *item_of(const slc_operation *context)
{
    return &context->pass->program->items[context->item];
}

static slc_moment make_record(const slc_operation *context, slc_moment_kind kind)
{
    return (slc_moment){
        .plan = context->rt->current.number, .pass = context->number, .item = context->item, .kind = kind};
}

static void record(const slc_operation *context, slc_moment_kind kind)
{
    sluice_runtime *rt = context->rt;
    if (!context->recording || context->pass->evaluate) return;
    if (rt->marks)
        slc_mark(rt, SLC_MOMENT_COMMUNICATION, make_record(context, kind), 0);
    else
        slc_recording_put(context->recording, SLC_MOMENT_COMMUNICATION, make_record(context, kind));
}

/* Records that work on this lane, which is measured, begins or ends; `elements` counts an update's. */
static void record_work(const slc_operation *context, slc_moment_kind kind, uint64_t elements)
{
    sluice_runtime *rt = context->rt;
    const slc_item_kind of = item_of(context)->kind;
    if (rt->marks)
        slc_mark(rt, SLC_MOMENT_COMMUNICATION, make_record(context, kind), elements);
    else if (of == SLC_ITEM_UPDATE || of == SLC_ITEM_COMPRESS)
        record(context, kind);
}

static sluice_status on_start(void *argument)
{
    slc_operation *context = argument;
    record(context, SLC_MOMENT_BEGINS);
    sluice_status status = slc_pass_claims(context->rt, context->pass, context->item, true);
    if (!status && item_of(context)->kind == SLC_ITEM_AGREE && !slc_is_stage(&context->rt->stage))
        status = slc_agreement_begin(context->rt, context->step);
    return status;
}

static bool last_reduction(const sluice_runtime *rt, const slc_item *item)
{
    return item->micro_batch + 1 == rt->job.micro_batches;
}

/* Returns true if the step may leave out some layers of the operation's unit, so that its time says nothing of the
 * whole. */
static bool in_part(const slc_operation *context)
{
    return context->step->leaves_out && context->rt->job.units[item_of(context)->unit].fused;
}

static sluice_status on_update(void *argument)
{
    slc_operation *context = argument;
    sluice_runtime *rt = context->rt;
    const slc_item *item = item_of(context);
    uint64_t began_ns = slc_clock_ns();
    uint64_t elements = slc_run_elements(&rt->job.units[item->unit], item->first_block, item->block_count);
    slc_strategy strategy = rt->units[item->unit].strategy;
    if (!slc_updates_whole(strategy)) elements /= rt->job.world;
    record_work(context, SLC_MOMENT_WORKS, elements);
    sluice_status status = slc_update_unit(rt, item, context->step);
    record_work(context, SLC_MOMENT_WORKED, elements);
    if (rt->marks) return status;
    const bool skipped = slc_exchanges(strategy) ? context->step->exchange_off : context->step->skip;
    if (!skipped && !in_part(context))
        slc_measure_add(slc_exchanges(strategy) ? &rt->measure->compression[SLC_MEASURE_APPLY] : &rt->measure->update,
                        began_ns, elements);
    return status;
}

static sluice_status on_inspect(void *argument)
{
    slc_operation *context = argument;
    return slc_onebit_inspect(context->rt, item_of(context)->unit, context->step);
}

static sluice_status on_compress(void *argument)
{
    slc_operation *context = argument;
    sluice_runtime *rt = context->rt;
    uint32_t unit = item_of(context)->unit;
    uint64_t began_ns = slc_clock_ns();
    record_work(context, SLC_MOMENT_WORKS, rt->job.units[unit].elements);
    sluice_status status = slc_onebit_compress(rt, unit, context->step);
    record_work(context, SLC_MOMENT_WORKED, rt->job.units[unit].elements);
    if (!rt->marks && !context->step->exchange_off && !in_part(context))
        slc_measure_add(&rt->measure->compression[SLC_MEASURE_COMPRESS], began_ns, rt->job.units[unit].elements);
    return status;
}

static sluice_status on_reduced(void *argument)
{
    slc_operation *context = argument;
    uint64_t began_ns = slc_clock_ns();
    slc_item of = *item_of(context);
    if (context->of_rows) { /* they may lie in any block of the table */
        of.first_block = 0;
        of.block_count = slc_unit_blocks(&context->rt->job.units[of.unit]);
    }
    record_work(context, SLC_MOMENT_WORKS, 0);
    sluice_status status = slc_inspect_reduced(context->rt, &of, context->step);
    record_work(context, SLC_MOMENT_WORKED, 0);
    if (!context->rt->marks) slc_measure_add(&context->rt->measure->inspection, began_ns, 0);
    return status;
}

static sluice_status on_agreed(void *argument)
{
    slc_operation *context = argument;
    slc_step_state *step = context->step;
    if (step->ahead) {
        sluice_status status = slc_pass_words_agree(context->rt, step);
        return status ? status : slc_norms_tell(context->rt, step, step->ahead->norms);
    }
    return slc_agreement_end(context->rt, context->step);
}

static sluice_status on_end(void *argument)
{
    slc_operation *context = argument;
    record(context, SLC_MOMENT_ENDS);
    return slc_pass_claims(context->rt, context->pass, context->item, false);
}

static void fill_call(sluice_status (*call)(void *context), slc_op *op)
{
    op->kind = SLC_CALL;
    op->call = call;
}

/* The step's end has added the words of all stages up before this starts. */
static sluice_status on_agreed_by_stages(void *context)
{
    (void)context;
    return SLUICE_OK;
}

static void fill_agreement(sluice_runtime *rt, slc_op *op)
{
    if (slc_is_stage(&rt->stage)) {
        fill_call(on_agreed_by_stages, op);
        return;
    }
    op->kind = SLC_ALL_REDUCE;
    op->dtype = SLUICE_INT64;
    op->elements = op->block_elements = rt->agreement.summed ? rt->agreement.summed : slc_agreement_words(&rt->job);
    op->block_count = 1;
    op->src = op->dst = rt->agreement.words;
    op->call = on_agreed;
}

static void fill_reduction(const sluice_runtime *rt, const slc_item *item, const slc_step_state *step, slc_op *op)
{
    const uint32_t micro_batch = slc_step_ordinal(step, rt->job.micro_batches, item->micro_batch);
    const slc_unit_state *unit = &rt->units[item->unit];
    op->kind = item->kind == SLC_ITEM_ALL_REDUCE ? SLC_ALL_REDUCE : SLC_REDUCE_SCATTER;
    op->dtype = unit->gradient_dtype;
    op->widen = unit->reduced_dtype != unit->gradient_dtype;
    op->src = unit->gradient;
    op->dst = unit->reduced ? unit->reduced : unit->gradient;
    op->dst_layout = unit->reduced && !unit->whole_sum ? SLC_SHARD : SLC_WHOLE;
    op->scale = step->scale;
    op->any_order = rt->config.sums == SLUICE_SUMS_NCCL;
    op->accumulate = rt->job.each && micro_batch > 0;
    /* The gradient of a table is inspected later, when the gradients of its rows have been added. */
    if (rt->job.units[item->unit].role == SLC_UNIT_WHOLE && last_reduction(rt, item) &&
        item->unit != slc_stage_rows_table(rt))
        op->call = on_reduced;
    if (slc_exchanges(unit->strategy)) op->skip = &step->average_off;
}

/* Takes an operation over but for the hooks, which are set already. */
static void keep_hooks(slc_op *op, slc_op with)
{
    with.start = op->start;
    with.call = op->call;
    with.end = op->end;
    with.context = op->context;
    with.what = op->what;
    with.alone = op->alone;
    *op = with;
}

static void fill_look_up(const sluice_runtime *rt, const slc_item *item, const slc_step_state *step, slc_op *op)
{
    if (item->kind == SLC_ITEM_GATHER_WINDOW) {
        keep_hooks(op, slc_look_up_gather(rt, item));
        return;
    }
    op->call = last_reduction(rt, item) ? on_reduced : NULL;
    keep_hooks(op, slc_look_up_reduce(rt, item, step));
}

/* The operation follows the table's reduction, which has begun the item. */
static void fill_rows_of_stages(const sluice_runtime *rt, const slc_operation *context, slc_op *op)
{
    op->start = NULL;
    op->call = on_reduced;
    keep_hooks(op, slc_stage_rows_reduce(rt, context->step));
}

static void fill_gather(const sluice_runtime *rt, const slc_item *item, slc_op *op)
{
    const slc_unit_state *unit = &rt->units[item->unit];
    bool sum = item->kind == SLC_ITEM_GATHER_GRADIENT;
    op->kind = SLC_ALL_GATHER;
    op->dtype = sum ? unit->reduced_dtype : unit->dtype;
    if (item->kind == SLC_ITEM_GATHER_VALUE || (sum && unit->whole_sum)) {
        op->src = op->dst = sum ? unit->reduced : unit->value;
        return;
    }
    op->src_layout = SLC_SHARD;
    op->src = sum ? unit->reduced : unit->shard;
    op->dst =
        sum ? unit->gradient
            : unit->gathered[slc_gathered_number(&rt->job, &rt->job.units[item->unit], item->micro_batch, item->index)];
}

static sluice_status fill_by_kind(sluice_runtime *rt, const slc_pass *pass, uint32_t item_index, slc_operation *context,
                                  slc_op *op)
{
    const slc_item *item = &pass->program->items[item_index];
    op->scale = 1;
    op->alone = slc_pass_is_new(pass);
    op->start = on_start;
    op->end = context->recording || pass->end_first[item_index] < pass->end_first[item_index + 1] ? on_end : NULL;
    op->context = context;
    if (item->unit != SLC_NONE) {
        op->elements = rt->job.units[item->unit].elements;
        op->block_elements = rt->job.units[item->unit].block_elements;
        op->first_block = item->first_block;
        op->block_count = item->block_count;
        if (context->of_rows) {
            fill_rows_of_stages(rt, context, op);
            return SLUICE_OK;
        }
        if (rt->units[item->unit].look_up) {
            fill_look_up(rt, item, context->step, op);
            return SLUICE_OK;
        }
    }
    switch (item->kind) {
    case SLC_ITEM_REDUCE_SCATTER:
    case SLC_ITEM_ALL_REDUCE: fill_reduction(rt, item, context->step, op); return SLUICE_OK;
    case SLC_ITEM_GATHER_GRADIENT:
    case SLC_ITEM_GATHER_VALUE:
    case SLC_ITEM_GATHER_WINDOW: fill_gather(rt, item, op); return SLUICE_OK;
    case SLC_ITEM_AGREE: fill_agreement(rt, op); return SLUICE_OK;
    case SLC_ITEM_UPDATE: fill_call(on_update, op); return SLUICE_OK;
    case SLC_ITEM_INSPECT: fill_call(on_inspect, op); return SLUICE_OK;
    case SLC_ITEM_COMPRESS: fill_call(on_compress, op); return SLUICE_OK;
    case SLC_ITEM_EXCHANGE: keep_hooks(op, slc_onebit_exchange(rt, item->unit, context->step)); return SLUICE_OK;
    default:
        return slc_error(SLUICE_ERR_FORMAT, "plan item %u: %s is no operation", item_index,
                         slc_item_kind_name(item->kind));
    }
}

sluice_status slc_operation_fill(sluice_runtime *rt, slc_pass *pass, uint32_t item_index, slc_operation *context,
                                 slc_op *op)
{
    static const bool yes = true;
    sluice_status status = fill_by_kind(rt, pass, item_index, context, op);
    if (!pass->evaluate && slc_left_out_item(rt, context->step, &pass->program->items[item_index])) op->skip = &yes;
    if (context->goes_on) op->end = NULL;
    return status;
}
