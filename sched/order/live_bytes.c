/* A gradient appears at the first slot that adds to it and shrinks run by run; gathered values grow run by run and go
 * at the last slot of their window. The buffers of an exchange live from one operation to the next. */
#include "sched/order/live_bytes.h"

#include "lib/plan/strategy_table.h"

#include <stdlib.h>

/* Bytes that an operation's run takes of a buffer of its unit. */
static int64_t run_bytes(const slc_live_bytes *live, const slc_item *item, slc_buffer_kind kind)
{
    const slc_job *job = live->in->job;
    const slc_unit *unit = &job->units[item->unit];
    uint64_t end = item->first_block + item->block_count;
    bool shard =
        kind == SLC_BUFFER_REDUCED && !slc_operations_of(job, unit, live->in->strategies[item->unit]).whole_sum;
    return (int64_t)(slc_block_byte(job, unit, kind, shard, end) -
                     slc_block_byte(job, unit, kind, shard, item->first_block));
}

static void add_life(slc_live_bytes *live, uint32_t first, uint32_t last, uint64_t bytes)
{
    uint32_t slots = slc_job_slots(live->in->job);
    for (uint32_t m = 0; m < live->in->job->micro_batches; m++)
        for (uint32_t s = first; s <= last; s++) live->slot_bytes[m * slots + s] += (int64_t)bytes;
}

static void add_activation(slc_live_bytes *live, const slc_activation_life *life)
{
    if (life->last_slot < life->first_slot) return;
    bool again = live->in->recompute && life->recomputable &&
                 live->in->recompute[slc_slot_layer(live->in->job, life->first_slot)];
    if (!again) {
        add_life(live, life->first_slot, life->last_slot, life->bytes);
        return;
    }
    add_life(live, life->first_slot, life->first_slot, life->bytes);
    add_life(live, life->last_slot, life->last_slot, life->bytes);
}

/* Adds the bytes that begin or end as a whole: a unit's gradient begins so, and a window of gathered values ends so. */
static void add_borders(slc_live_bytes *live, uint32_t u)
{
    const slc_job *job = live->in->job;
    const slc_unit *unit = &job->units[u];
    slc_strategy strategy = live->in->strategies[u];
    uint32_t first, last;
    slc_window window;
    slc_unit_gradient_slots(job, unit, &first, &last);
    if (unit->trainable && slc_gradient_is_transient(strategy))
        live->beginning[first] += (int64_t)slc_block_byte(job, unit, SLC_BUFFER_GRADIENT, false, slc_unit_blocks(unit));
    for (uint32_t w = 0; slc_gathers_windows(strategy) && slc_unit_window(job, unit, true, w, &window); w++)
        live->ending[window.last_slot] +=
            (int64_t)slc_operation_bytes(job, unit, SLC_ITEM_GATHER_WINDOW, unit->elements);
}

bool slc_live_bytes_init(slc_live_bytes *live, const slc_scheduling *in)
{
    const slc_job *job = in->job;
    const size_t slots = slc_job_slots(job);
    *live = (slc_live_bytes){.in = in};
    live->slot_bytes = calloc((job->micro_batches + (size_t)2) * slots + 1, sizeof *live->slot_bytes);
    if (!live->slot_bytes) return false;
    live->beginning = live->slot_bytes + job->micro_batches * slots;
    live->ending = live->beginning + slots;
    for (uint32_t u = 0; u < job->unit_count; u++) add_borders(live, u);
    for (uint32_t a = 0; a < job->activation_count; a++) add_activation(live, &job->activations[a]);
    for (uint32_t w = 0; w < job->workspace_count; w++)
        add_life(live, job->workspaces[w].slot, job->workspaces[w].slot, job->workspaces[w].bytes);
    for (uint32_t u = 0; u < job->unit_count; u++)
        live->resident += (int64_t)slc_resident_bytes(job, &job->units[u], in->strategies[u]);
    live->resident += (int64_t)(job->scratch_bytes + 8 * slc_agreement_words(job));
    return true;
}

void slc_live_bytes_fini(slc_live_bytes *live)
{
    free(live->slot_bytes);
    *live = (slc_live_bytes){0};
}

/* Returns how many bytes more an operation of a onebit unit leaves in use than it found. */
static int64_t left_by(const slc_live_bytes *live, const slc_item *item)
{
    const slc_exchange_sizes *sizes = &live->in->job->units[item->unit].exchange;
    if (!slc_exchanges(live->in->strategies[item->unit])) return 0;
    switch (item->kind) {
    case SLC_ITEM_COMPRESS: return (int64_t)sizes->packets;
    case SLC_ITEM_EXCHANGE: return (int64_t)sizes->results - (int64_t)sizes->packets;
    case SLC_ITEM_UPDATE: return -(int64_t)sizes->results;
    default: return 0;
    }
}

void slc_live_bytes_late(slc_live_bytes *live, const slc_item *item)
{
    if (item->unit == SLC_NONE) return;
    live->transient -= left_by(live, item);
    if (slc_is_reduction(item->kind) && slc_gradient_is_transient(live->in->strategies[item->unit]))
        live->transient += run_bytes(live, item, SLC_BUFFER_GRADIENT);
}

static int64_t beginning(const slc_live_bytes *live, uint32_t micro_batch, uint32_t slot)
{
    return !micro_batch || live->in->job->each ? live->beginning[slot] : 0;
}

bool slc_live_bytes_fit(const slc_live_bytes *live, const slc_item *gather, uint32_t micro_batch, uint32_t slot)
{
    if (live->in->limit > INT64_MAX) return true;
    int64_t bytes = live->resident + live->transient + beginning(live, micro_batch, slot) +
                    live->slot_bytes[micro_batch * slc_job_slots(live->in->job) + slot];
    return bytes + (gather ? run_bytes(live, gather, SLC_BUFFER_GATHERED) : 0) <= (int64_t)live->in->limit;
}

void slc_live_bytes_pass(slc_live_bytes *live, const slc_item *item)
{
    const slc_job *job = live->in->job;
    slc_strategy strategy = live->in->strategies[item->unit];
    slc_unit_operations of = slc_operations_of(job, &job->units[item->unit], strategy);
    bool transient = slc_gradient_is_transient(strategy);
    bool last = item->micro_batch + 1 == job->micro_batches;
    live->transient += left_by(live, item);
    switch (item->kind) {
    case SLC_ITEM_GATHER_WINDOW: live->transient += run_bytes(live, item, SLC_BUFFER_GATHERED); break;
    case SLC_ITEM_REDUCE_SCATTER:
        if (of.moves_sum && transient) live->transient -= run_bytes(live, item, SLC_BUFFER_GRADIENT);
        if (of.keeps_sum && (job->each ? !item->micro_batch : last))
            live->transient += run_bytes(live, item, SLC_BUFFER_REDUCED);
        break;
    case SLC_ITEM_UPDATE:
        if (of.keeps_sum)
            live->transient -= run_bytes(live, item, SLC_BUFFER_REDUCED);
        else if (transient)
            live->transient -= run_bytes(live, item, SLC_BUFFER_GRADIENT);
        break;
    default: break;
    }
}

void slc_live_bytes_slot(slc_live_bytes *live, uint32_t micro_batch, uint32_t slot)
{
    live->transient += beginning(live, micro_batch, slot) - live->ending[slot];
}
