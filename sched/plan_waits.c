/* What must be over before an item may start: its data, the last use of a resident buffer that it overwrites, and its
 * tickets (earlier claims at the same addresses). Lanes run in order, so of all waits only the latest of each lane
 * needs to be kept, for this step and for the one before: at most four. */
#include "sched/plan_parts.h"

#include "lib/base/status.h"

#include <stdlib.h>

enum { SAME_SLOT, SAME_OPERATION, PREVIOUS_SLOT, PREVIOUS_OPERATION, WAITS };

typedef struct {
    const slc_job *job;
    const slc_plan *plan;
    const slc_program *program;
    bool evaluate;
    uint32_t item;          /* whose waits are collected */
    uint32_t latest[WAITS]; /* SLC_NONE: none */
} waits;

static void wait_for(waits *w, uint32_t item, bool previous)
{
    if (item == SLC_NONE) return;
    bool slot = w->program->items[item].kind == SLC_ITEM_SLOT;
    uint32_t *latest = &w->latest[(previous ? PREVIOUS_SLOT : SAME_SLOT) + (slot ? 0 : 1)];
    if (*latest == SLC_NONE || *latest < item) *latest = item;
}

static void wait_for_operation(waits *w, slc_item_kind kind, uint32_t m, uint32_t unit, uint32_t index, bool previous)
{
    wait_for(w, slc_find_operation(w->program, kind, m, unit, index), previous);
}

static uint32_t window_of(const slc_job *job, const slc_unit *unit, bool with_backward, uint32_t slot)
{
    slc_window window;
    for (uint32_t w = 0; slc_unit_window(job, unit, with_backward, w, &window); w++)
        if (window.first_slot <= slot && slot <= window.last_slot) return w;
    return SLC_NONE;
}

static void wait_for_value(waits *w, uint32_t u, uint32_t m, uint32_t slot)
{
    const slc_unit *unit = &w->job->units[u];
    uint32_t last = w->job->micro_batches - 1;
    slc_strategy strategy = w->plan->strategies[u];
    if (strategy == SLC_FSDP)
        wait_for_operation(w, SLC_ITEM_GATHER_WINDOW, m, u, window_of(w->job, unit, !w->evaluate, slot), false);
    else if (unit->trainable && !w->evaluate)
        wait_for_operation(w, strategy == SLC_DP ? SLC_ITEM_UPDATE : SLC_ITEM_GATHER_VALUE, last, u, 0, true);
}

/* A resident gradient is written again only when its last reader is done. */
static void wait_for_gradient_place(waits *w, uint32_t u, uint32_t m)
{
    if (slc_gradient_is_transient(w->plan->strategies[u])) return;
    if (w->job->each && m) wait_for_operation(w, SLC_ITEM_REDUCE_SCATTER, m - 1, u, 0, false);
    if (!m) wait_for_operation(w, SLC_ITEM_UPDATE, w->job->micro_batches - 1, u, 0, true);
}

static void slot_waits(waits *w, const slc_item *item)
{
    uint32_t layer = slc_slot_layer(w->job, item->slot);
    bool forward = slc_slot_is_forward(w->job, item->slot);
    for (uint32_t u = 0; u < w->job->unit_count; u++)
        for (uint32_t i = 0; i < w->job->units[u].use_count; i++) {
            const slc_use *use = &w->job->units[u].uses[i];
            if (use->layer != layer) continue;
            if (forward || use->backward_value) wait_for_value(w, u, item->micro_batch, item->slot);
            if (!forward && w->job->units[u].trainable) wait_for_gradient_place(w, u, item->micro_batch);
        }
}

static void reduction_waits(waits *w, const slc_item *item)
{
    uint32_t first, last;
    slc_unit_gradient_slots(w->job, &w->job->units[item->unit], &first, &last);
    wait_for(w, slc_find_slot(w->program, item->micro_batch, last), false);
}

static void last_reduction(waits *w, uint32_t u)
{
    uint32_t last = w->job->micro_batches - 1;
    wait_for_operation(w, SLC_ITEM_REDUCE_SCATTER, last, u, 0, false);
    wait_for_operation(w, SLC_ITEM_ALL_REDUCE, last, u, 0, false);
}

static void operation_waits(waits *w, const slc_item *item)
{
    uint32_t last = w->job->micro_batches - 1;
    switch (item->kind) {
    case SLC_ITEM_REDUCE_SCATTER:
    case SLC_ITEM_ALL_REDUCE: reduction_waits(w, item); break;
    case SLC_ITEM_GATHER_GRADIENT: last_reduction(w, item->unit); break;
    case SLC_ITEM_AGREE:
        for (uint32_t u = 0; u < w->job->unit_count; u++) last_reduction(w, u);
        break;
    case SLC_ITEM_UPDATE:
        last_reduction(w, item->unit);
        wait_for_operation(w, SLC_ITEM_GATHER_GRADIENT, last, item->unit, 0, false);
        if (w->job->barrier) wait_for_operation(w, SLC_ITEM_AGREE, last, SLC_NONE, 0, false);
        break;
    case SLC_ITEM_GATHER_VALUE: wait_for_operation(w, SLC_ITEM_UPDATE, last, item->unit, 0, false); break;
    case SLC_ITEM_GATHER_WINDOW:
        if (!w->evaluate) wait_for_operation(w, SLC_ITEM_UPDATE, last, item->unit, 0, true);
        break;
    default: break;
    }
}

static bool addresses_overlap(const slc_plan *plan, const slc_claim *a, const slc_claim *b)
{
    uint64_t at = plan->buffers[a->buffer].offset, bt = plan->buffers[b->buffer].offset;
    return at + a->first_byte < bt + b->end_byte && bt + b->first_byte < at + a->end_byte;
}

static void tickets(waits *w)
{
    const slc_program *program = w->program;
    for (uint32_t i = 0; i < program->claim_count; i++) {
        const slc_claim *mine = &program->claims[i];
        if (mine->from != w->item) continue;
        for (uint32_t j = 0; j < program->claim_count; j++) {
            const slc_claim *other = &program->claims[j];
            if (addresses_overlap(w->plan, mine, other)) wait_for(w, other->to, other->to >= mine->from);
        }
    }
}

static void wait_for_all_before(waits *w)
{
    bool slot = w->program->items[w->item].kind == SLC_ITEM_SLOT;
    for (uint32_t i = w->item; i-- > 0;)
        if ((w->program->items[i].kind == SLC_ITEM_SLOT) != slot) {
            wait_for(w, i, false);
            return;
        }
    for (uint32_t i = w->program->item_count; i-- > 0;)
        if ((w->program->items[i].kind == SLC_ITEM_SLOT) != slot) {
            wait_for(w, i, true);
            return;
        }
}

/* Waits of a slot for slots are kept by the lane itself. */
static sluice_status store(const waits *w, slc_item *item)
{
    item->after = calloc(WAITS, sizeof *item->after);
    if (!item->after) return slc_error(SLUICE_ERR_MEMORY, "no memory for waits");
    for (int k = 0; k < WAITS; k++) {
        bool on_slot = k == SAME_SLOT || k == PREVIOUS_SLOT;
        if (w->latest[k] == SLC_NONE || (on_slot && item->kind == SLC_ITEM_SLOT)) continue;
        item->after[item->after_count++] = (slc_after){w->latest[k], k >= PREVIOUS_SLOT};
    }
    return SLUICE_OK;
}

sluice_status slc_plan_add_waits(const slc_job *job, slc_plan *plan, bool slots_wait_for_all, bool evaluate)
{
    slc_program *program = evaluate ? &plan->evaluate : &plan->train;
    for (uint32_t i = 0; i < program->item_count; i++) {
        slc_item *item = &program->items[i];
        waits w = {job, plan, program, evaluate, i, {SLC_NONE, SLC_NONE, SLC_NONE, SLC_NONE}};
        if (item->kind == SLC_ITEM_SLOT)
            slot_waits(&w, item);
        else
            operation_waits(&w, item);
        tickets(&w);
        if (slots_wait_for_all) wait_for_all_before(&w);
        sluice_status status = store(&w, item);
        if (status) return status;
    }
    return SLUICE_OK;
}
