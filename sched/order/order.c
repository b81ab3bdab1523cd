/* Appends slots and operations to an order. sched/joint/joint_test.c covers this file. */
#include "lib/plan/strategy_table.h"
#include "sched/order/order.h"

#include <stdlib.h>
#include <string.h>

void slc_order_append(slc_order *order, slc_item item)
{
    item.after = NULL;
    item.after_count = 0;
    if (order->count == order->capacity) {
        uint32_t capacity = order->capacity ? 2 * order->capacity : 64;
        slc_item *items = realloc(order->items, capacity * sizeof *items);
        if (!items) {
            order->failed = true;
            return;
        }
        order->items = items;
        order->capacity = capacity;
    }
    order->items[order->count++] = item;
}

void slc_order_slot(slc_order *order, uint32_t micro_batch, uint32_t slot)
{
    slc_order_append(order,
                     (slc_item){.kind = SLC_ITEM_SLOT, .micro_batch = micro_batch, .slot = slot, .unit = SLC_NONE});
}

void slc_order_operation(slc_order *order, const slc_job *job, slc_item_kind kind, uint32_t micro_batch, uint32_t unit)
{
    uint64_t blocks = unit == SLC_NONE ? 0 : slc_unit_blocks(&job->units[unit]);
    slc_order_run(order, kind, false, micro_batch, unit, 0, 0, blocks);
}

void slc_order_run(slc_order *order, slc_item_kind kind, bool late, uint32_t micro_batch, uint32_t unit, uint32_t index,
                   uint64_t first_block, uint64_t block_count)
{
    slc_order_append(order, (slc_item){.kind = kind,
                                       .late = late,
                                       .micro_batch = micro_batch,
                                       .unit = unit,
                                       .index = index,
                                       .first_block = first_block,
                                       .block_count = block_count});
}

void slc_order_fini(slc_order *order)
{
    free(slc_order_take_items(order));
}

slc_item *slc_order_take_items(slc_order *order)
{
    slc_item *items = order->items;
    slc_layer_users_fini(&order->users);
    *order = (slc_order){0};
    return items;
}

const uint32_t *slc_order_users(slc_order *order, const slc_job *job, uint32_t layer, uint32_t *count)
{
    *count = 0;
    if (!order->failed && !order->users.first) order->failed = !slc_layer_users_init(&order->users, job);
    if (order->failed) return NULL;
    *count = order->users.first[layer + 1] - order->users.first[layer];
    return order->users.units + order->users.first[layer];
}

void slc_order_gather_window(slc_order *order, const slc_job *job, uint32_t micro_batch, uint32_t unit, uint32_t window)
{
    slc_order_run(order, SLC_ITEM_GATHER_WINDOW, false, micro_batch, unit, window, 0,
                  slc_unit_blocks(&job->units[unit]));
}

/* No window of a unit begins in a slot of a layer that does not use it. */
void slc_order_gathers_for(slc_order *order, const slc_job *job, const slc_strategy *strategies, bool evaluate,
                           uint32_t micro_batch, uint32_t slot)
{
    uint32_t count;
    const uint32_t *users = slc_order_users(order, job, slc_slot_layer(job, slot), &count);
    for (uint32_t k = 0; k < count; k++) {
        const uint32_t u = users[k];
        if (!slc_gathers_windows(strategies[u])) continue;
        slc_window window;
        for (uint32_t w = 0; slc_unit_window(job, &job->units[u], !evaluate, w, &window); w++)
            if (window.first_slot == slot) slc_order_gather_window(order, job, micro_batch, u, w);
    }
}

void slc_order_gathers_ahead(slc_order *order, const slc_job *job, const slc_strategy *strategies, uint32_t i,
                             bool after_slot)
{
    const uint32_t slots = slc_job_slots(job), next = (i + 1) % slots;
    uint32_t count;
    const uint32_t *users = slc_order_users(order, job, slc_slot_layer(job, next), &count);
    for (uint32_t k = 0; k < count; k++) {
        const uint32_t u = users[k];
        if (!slc_gathers_windows(strategies[u])) continue;
        slc_window window;
        for (uint32_t w = 0; slc_unit_window(job, &job->units[u], true, w, &window); w++) {
            bool in_use = window.last_slot - window.first_slot + 1 == slots;
            bool unknown = slc_looks_up(&job->units[u]) && !next;
            if (window.first_slot == next && after_slot == (in_use || unknown))
                slc_order_gather_window(order, job, (i + 1) / slots, u, w);
        }
    }
}

bool slc_reduced_after(const slc_job *job, const slc_unit *unit, uint32_t micro_batch, uint32_t slot)
{
    if (!unit->trainable || !(job->each || micro_batch + 1 == job->micro_batches)) return false;
    return slot == slc_backward_slot(job, unit->uses[0].layer);
}

uint32_t slc_updated_after(const slc_job *job, const slc_strategy *strategies, uint32_t reduced)
{
    uint32_t updated = slc_parameter_unit(job, reduced);
    bool partner_ends = slc_partner_wait_of(&job->units[reduced], SLC_ITEM_UPDATE);
    return partner_ends || slc_waits_for_agreement(job, strategies[updated]) ? SLC_NONE : updated;
}

static void append_existing(slc_order *order, const slc_job *job, slc_item_kind kind, uint32_t micro_batch,
                            uint32_t unit)
{
    if (kind != SLC_ITEM_KINDS) slc_order_operation(order, job, kind, micro_batch, unit);
}

void slc_order_reduce(slc_order *order, const slc_job *job, const slc_strategy *strategies, uint32_t micro_batch,
                      uint32_t unit)
{
    slc_unit_operations of = slc_operations_of(job, &job->units[unit], strategies[unit]);
    append_existing(order, job, of.reduce, micro_batch, unit);
    append_existing(order, job, of.inspect, micro_batch, unit);
    if (slc_waits_for_agreement(job, strategies[unit])) return;
    append_existing(order, job, of.compress, micro_batch, unit);
    append_existing(order, job, of.exchange, micro_batch, unit);
}

void slc_order_reductions_after(slc_order *order, const slc_job *job, const slc_strategy *strategies,
                                uint32_t micro_batch, uint32_t slot)
{
    uint32_t count;
    const uint32_t *users = slc_order_users(order, job, slc_slot_layer(job, slot), &count);
    while (count-- > 0)
        if (slc_reduced_after(job, &job->units[users[count]], micro_batch, slot))
            slc_order_reduce(order, job, strategies, micro_batch, users[count]);
}

void slc_order_updates_after(slc_order *order, const slc_job *job, const slc_strategy *strategies, uint32_t micro_batch,
                             uint32_t slot)
{
    uint32_t count;
    const uint32_t *users = slc_order_users(order, job, slc_slot_layer(job, slot), &count);
    while (count-- > 0)
        if (micro_batch + 1 == job->micro_batches &&
            slc_reduced_after(job, &job->units[users[count]], micro_batch, slot))
            slc_order_update(order, job, strategies, slc_updated_after(job, strategies, users[count]));
}

void slc_order_update(slc_order *order, const slc_job *job, const slc_strategy *strategies, uint32_t unit)
{
    if (unit == SLC_NONE) return;
    slc_unit_operations of = slc_operations_of(job, &job->units[unit], strategies[unit]);
    uint32_t last = job->micro_batches - 1;
    append_existing(order, job, of.gather_gradient, last, unit);
    if (slc_waits_for_agreement(job, strategies[unit])) {
        append_existing(order, job, of.compress, last, unit);
        append_existing(order, job, of.exchange, last, unit);
    }
    append_existing(order, job, of.update, last, unit);
}

void slc_order_updates_at_end(slc_order *order, const slc_job *job, const slc_strategy *strategies)
{
    bool any = false;
    for (uint32_t u = 0; u < job->unit_count; u++) any |= slc_waits_for_agreement(job, strategies[u]);
    for (uint32_t layer = 0; any && layer < job->layer_count; layer++)
        for (uint32_t u = 0; u < job->unit_count; u++)
            if (job->units[u].trainable && slc_waits_for_agreement(job, strategies[u]) &&
                slc_first_reader(job, &job->units[u])->uses[0].layer == layer)
                slc_order_update(order, job, strategies, u);
}

/* In a job that splits, these gathers are late: the next step's rows are gathered in the next pass, and otherwise all
 * of these would come before them. */
static void gather_values_of(slc_order *order, const slc_job *job, const slc_strategy *strategies, uint32_t layer)
{
    uint32_t count;
    const uint32_t *users = slc_order_users(order, job, layer, &count);
    for (uint32_t k = 0; k < count; k++) {
        const uint32_t u = users[k];
        if (job->units[u].uses[0].layer == layer &&
            slc_operations_of(job, &job->units[u], strategies[u]).gather_value != SLC_ITEM_KINDS)
            slc_order_run(order, SLC_ITEM_GATHER_VALUE, slc_job_splits(job), job->micro_batches - 1, u, 0, 0,
                          slc_unit_blocks(&job->units[u]));
    }
}

void slc_order_value_gathers(slc_order *order, const slc_job *job, const slc_strategy *strategies)
{
    for (uint32_t layer = 0; layer < job->layer_count && !slc_job_splits(job); layer++)
        gather_values_of(order, job, strategies, layer);
}

void slc_order_values_ahead(slc_order *order, const slc_job *job, const slc_strategy *strategies, uint32_t i)
{
    if (!slc_job_splits(job)) return;
    if (!i) gather_values_of(order, job, strategies, 0);
    if (i + 1 < job->layer_count) gather_values_of(order, job, strategies, i + 1);
}

/* Returns true if the gradients of slot i are reduced right after it, and not after the next slot. Those of the last
 * slot of a micro-batch with rows are: the rows' lists are read until the reduction ends, and the next micro-batch's
 * first gather brings new lists. */
static bool reduced_at_once(const slc_job *job, uint32_t i)
{
    return slc_job_splits(job) && job->each && (i + 1) % slc_job_slots(job) == 0;
}

void slc_order_one_ahead(slc_order *order, const slc_scheduling *in, slc_order_reducer *reduce, const void *context)
{
    const slc_job *job = in->job;
    uint32_t slots = slc_job_slots(job), last = job->micro_batches * slots - 1;
    slc_order_gathers_for(order, job, in->strategies, false, 0, 0);
    for (uint32_t i = 0; i <= last; i++) {
        bool at_once = reduced_at_once(job, i);
        if (i < last) slc_order_gathers_ahead(order, job, in->strategies, i, false);
        slc_order_values_ahead(order, job, in->strategies, i);
        slc_order_slot(order, i / slots, i % slots);
        if (i < last && !at_once) slc_order_gathers_ahead(order, job, in->strategies, i, true);
        if (i && !reduced_at_once(job, i - 1)) reduce(context, in, order, (i - 1) / slots, (i - 1) % slots);
        if (i == last || at_once) reduce(context, in, order, i / slots, i % slots);
        if (i < last && at_once) slc_order_gathers_ahead(order, job, in->strategies, i, true);
    }
    slc_order_operation(order, job, SLC_ITEM_AGREE, job->micro_batches - 1, SLC_NONE);
}

/* ---- Changing an order ---- */

void slc_order_shift(slc_order *order, uint32_t from, uint32_t to)
{
    slc_item moved = order->items[from];
    if (from < to)
        memmove(order->items + from, order->items + from + 1, (to - from) * sizeof moved);
    else
        memmove(order->items + to + 1, order->items + to, (from - to) * sizeof moved);
    order->items[to] = moved;
}

void slc_order_settle_agreement(slc_order *order, const slc_job *job)
{
    uint32_t agree = SLC_NONE, last[2] = {SLC_NONE, SLC_NONE};
    for (uint32_t i = 0; i < order->count; i++) {
        if (order->items[i].kind == SLC_ITEM_AGREE) agree = i;
        if (slc_precedes_agreement(job, order->items[i].kind) && order->items[i].micro_batch + 1 == job->micro_batches)
            last[order->items[i].late] = i;
    }
    bool late = last[1] != SLC_NONE;
    uint32_t last_before = last[late];
    if (agree == SLC_NONE || last_before == SLC_NONE || (order->items[agree].late == late && agree > last_before))
        return;
    order->items[agree].late = late;
    slc_order_shift(order, agree, agree < last_before ? last_before : last_before + 1);
}
