/* A stage's step as an order: the slots of its tasks, with messages between them and operations after them.
 * stage_job_test.c covers this file. */
#include "sched/pipeline/stage_order.h"

#include "lib/base/status.h"
#include "lib/plan/strategy_table.h"
#include "sched/layout/make_plan.h"

/* A step that is written: messages go between its tasks. */
typedef struct {
    const slc_stage_job *stage;
    slc_order *order;
    uint32_t received; /* tasks whose messages have been asked for */
} writing;

static void append_message(writing *w, uint32_t channel, uint32_t micro_batch)
{
    const bool receives = w->stage->channels[channel].receives;
    slc_order_append(w->order, (slc_item){.kind = receives ? SLC_ITEM_RECEIVE : SLC_ITEM_SEND,
                                          .micro_batch = micro_batch,
                                          .unit = SLC_NONE,
                                          .index = channel});
}

/* Appends what the task reads (receives), or what it has made (sends). */
static void append_messages(writing *w, uint32_t task, bool receives)
{
    const slc_stage_job *stage = w->stage;
    for (uint32_t c = 0; c < stage->job.channel_count; c++) {
        const slc_stage_channel *channel = &stage->channels[c];
        if (channel->receives != receives || channel->slot == SLC_NONE) continue;
        for (uint32_t k = stage->first_slot[task]; k < stage->first_slot[task + 1]; k++)
            if (stage->slots[k].slot == channel->slot) append_message(w, c, stage->slots[k].micro_batch);
    }
}

/* A message stands after the task that follows the one which made it, so that it can be on its way meanwhile; but the
 * backward of the same micro-batch releases what is sent. */
static void append_sends(writing *w, uint32_t task)
{
    if (task && !slc_stage_same_micro_batch(w->stage, task - 1, task)) append_messages(w, task - 1, false);
    if (slc_stage_same_micro_batch(w->stage, task, task + 1) || task + 1 == w->stage->task_count)
        append_messages(w, task, false);
}

static void append_receives(writing *w, uint32_t task, uint32_t ahead)
{
    for (; w->received <= task + ahead && w->received < w->stage->task_count; w->received++)
        append_messages(w, w->received, true);
}

/* Rows go out as soon as the other end has room for them; their gradients come back one after another. */
static void append_rows(writing *w, bool receives)
{
    const slc_job *job = &w->stage->job;
    for (uint32_t c = 0; c < job->channel_count; c++)
        for (uint32_t m = 0; job->channels[c].slot == SLC_NONE && m < job->micro_batches; m++)
            if (job->channels[c].receives == receives) append_message(w, c, m);
}

/* True if the unit is a table to which other stages send gradients of the rows that they looked up. These come back
 * last of all, so a table is reduced and updated at the end of the step. */
static bool is_table(const slc_job *job, uint32_t unit)
{
    for (uint32_t c = 0; c < job->channel_count; c++)
        if (job->channels[c].unit == unit && job->channels[c].receives) return true;
    return false;
}

static void append_unit(writing *w, uint32_t unit, uint32_t micro_batch, bool updates)
{
    const slc_stage_job *stage = w->stage;
    if (!updates)
        slc_order_reduce(w->order, &stage->job, stage->strategies, micro_batch, unit);
    else if (micro_batch + 1 == stage->job.micro_batches)
        slc_order_update(w->order, &stage->job, stage->strategies,
                         slc_updated_after(&stage->job, stage->strategies, unit));
}

/* Appends the reductions of the units whose gradient is complete after a slot, and then their updates. */
static void append_operations(writing *w, const slc_stage_slot *slot)
{
    const slc_stage_job *stage = w->stage;
    uint32_t count;
    const uint32_t *users = slc_order_users(w->order, &stage->job, slc_slot_layer(&stage->job, slot->slot), &count);
    for (int updates = 0; updates < 2; updates++)
        for (uint32_t k = count; k-- > 0;)
            if (slc_reduced_after(&stage->job, &stage->job.units[users[k]], slot->micro_batch, slot->slot) &&
                !is_table(&stage->job, users[k]))
                append_unit(w, users[k], slot->micro_batch, updates);
}

static void append_tables(writing *w)
{
    const slc_job *job = &w->stage->job;
    for (int updates = 0; updates < 2; updates++)
        for (uint32_t u = 0; u < job->unit_count; u++)
            if (job->units[u].trainable && is_table(job, u)) append_unit(w, u, job->micro_batches - 1, updates);
}

/* Appends gathers of windows that begin in the slot after number `k` of the step, or in the step's first slot where `k`
 * is SLC_NONE. Before slot `k` (`after` false) these are the gathers that may run while it computes. After slot `k`
 * they are those of windows that slot `k` itself uses, for another micro-batch. */
static void append_gathers(writing *w, uint32_t k, bool after)
{
    const slc_stage_job *stage = w->stage;
    const uint32_t next = k == SLC_NONE ? 0 : k + 1;
    uint32_t count;
    if (next == stage->slot_count) return;
    const slc_stage_slot *slot = &stage->slots[next];
    const uint32_t *users = slc_order_users(w->order, &stage->job, slc_slot_layer(&stage->job, slot->slot), &count);
    for (uint32_t n = 0; n < count; n++) {
        const slc_unit *unit = &stage->job.units[users[n]];
        slc_window window;
        if (!slc_gathers_windows(stage->strategies[users[n]]) ||
            slc_gathered_in(unit, slot->micro_batch) != slot->micro_batch)
            continue;
        for (uint32_t i = 0; slc_unit_window(&stage->job, unit, true, i, &window); i++) {
            const bool in_use =
                k != SLC_NONE && stage->slots[k].slot >= window.first_slot && stage->slots[k].slot <= window.last_slot;
            if (window.first_slot == slot->slot && after == in_use)
                slc_order_gather_window(w->order, &stage->job, slot->micro_batch, users[n], i);
        }
    }
}

static void append_slot(writing *w, uint32_t k)
{
    const slc_stage_job *stage = w->stage;
    const slc_stage_slot *slot = &stage->slots[k];
    append_gathers(w, k, false);
    slc_order_append(w->order, (slc_item){.kind = SLC_ITEM_SLOT,
                                          .micro_batch = slot->micro_batch,
                                          .slot = slot->slot,
                                          .unit = SLC_NONE,
                                          .index = slot->task});
    append_gathers(w, k, true);
    if (!slc_slot_is_forward(&stage->job, slot->slot)) append_operations(w, slot);
}

sluice_status slc_stage_order(const slc_stage_job *stage, slc_order *order)
{
    const slc_job *job = &stage->job;
    writing w = {.stage = stage, .order = order};
    *order = (slc_order){0};
    append_rows(&w, false);
    append_rows(&w, true);
    append_gathers(&w, SLC_NONE, false);
    for (uint32_t t = 0; t < stage->task_count; t++) {
        append_receives(&w, t, stage->ahead);
        for (uint32_t k = stage->first_slot[t]; k < stage->first_slot[t + 1]; k++) append_slot(&w, k);
        append_sends(&w, t);
    }
    append_tables(&w);
    slc_order_operation(order, job, SLC_ITEM_AGREE, job->micro_batches - 1, SLC_NONE);
    slc_order_updates_at_end(order, job, stage->strategies);
    slc_order_value_gathers(order, job, stage->strategies);
    return order->failed ? slc_error(SLUICE_ERR_MEMORY, "order of stage %u", stage->stage) : SLUICE_OK;
}

/* A stage's evaluation is ordered as that of a job without a pipeline; operations overlap with slots. */
static const slc_scheduler stage_scheduler = {.name = "stage", .evaluate = slc_evaluate_one_ahead};

static slc_scheduling scheduling_of(const slc_stage_job *stage)
{
    return (slc_scheduling){
        .job = &stage->job, .strategies = stage->strategies, .recompute = stage->recompute, .limit = UINT64_MAX};
}

sluice_status slc_stage_plan(const slc_stage_job *stage, slc_plan **out)
{
    slc_order order;
    const slc_scheduling in = scheduling_of(stage);
    *out = NULL;
    sluice_status status = slc_stage_order(stage, &order);
    if (!status) status = slc_plan_from_order(&in, &order, &stage_scheduler, out);
    slc_order_fini(&order);
    return slc_error_context(status, "stage %u", stage->stage);
}

sluice_status slc_stage_bytes(const slc_stage_job *stage, uint64_t *bytes)
{
    slc_order order;
    slc_plan *plan = NULL;
    const slc_scheduling in = scheduling_of(stage);
    sluice_status status = slc_stage_order(stage, &order);
    if (!status) status = slc_plan_lay_out(&in, &order, &stage_scheduler, 0, &plan);
    if (!status && !plan) status = slc_error(SLUICE_ERR_FORMAT, "stage %u: its order is illegal", stage->stage);
    if (!status) *bytes = plan->arena_bytes + stage->job.reserved_bytes;
    slc_plan_destroy(plan);
    slc_order_fini(&order);
    return status;
}
