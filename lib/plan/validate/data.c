/* The validator's check of time and data: it derives what has surely ended when an item starts, and checks that this is
 * all that the item needs. Waits for items that a pass leaves out, or for the pass before a first one, prove nothing.
 * validate_split_test.c and tests/plan/validate_test.c cover this file. */
#include "lib/plan/validate/parts.h"

#include <stdio.h>

/* ---- What is surely over ---- */

static void add_known(const slc_validation *j, slc_sure *known, const slc_sure *more)
{
    for (uint32_t lane = 0; lane < j->lanes; lane++)
        if (more->over[lane] > known->over[lane]) known->over[lane] = more->over[lane];
}

/* States that the first `count` items of a lane have ended in a pass. */
static void know_over(const slc_validation *j, slc_sure *known, slc_lane lane, int pass, uint32_t count)
{
    const uint32_t over = (uint32_t)pass * j->count[lane] + count;
    if (over > known->over[lane]) known->over[lane] = over;
}

/* Adds the knowledge when `item` of a pass has ended. Completion of operations is counted in order. */
static void know_ended(const slc_validation *j, slc_sure *known, int pass, uint32_t item)
{
    add_known(j, known, &j->known[pass][item]);
    know_over(j, known, slc_validate_lane(j, item), pass, j->ordinal[item] + 1);
}

/* `last` holds what was known at the start of each lane's last item and is moved on. The compute lane runs one item at
 * a time, so all its earlier items have ended. */
static void derive_pass(slc_validation *j, int pass, slc_sure last[SLC_LANES])
{
    for (uint32_t i = 0; i < j->program->item_count; i++) {
        if (!slc_validate_runs(j, pass, i)) continue;
        const slc_item *item = &j->program->items[i];
        slc_lane lane = slc_validate_lane(j, i);
        slc_sure *known = &j->known[pass][i];
        *known = last[lane];
        if (lane == SLC_LANE_COMPUTE) know_over(j, known, lane, pass, j->ordinal[i]);
        for (uint32_t a = 0; a < item->after_count; a++) {
            int other = pass - item->after[a].previous;
            if (other >= 0 && slc_validate_runs(j, other, item->after[a].item))
                know_ended(j, known, other, item->after[a].item);
        }
        last[lane] = *known;
    }
}

void slc_validate_derive(slc_validation *j)
{
    slc_sure last[SLC_LANES] = {{{0}}};
    derive_pass(j, 0, last);
    if (j->passes[1] == SLC_PASS_DRAIN) /* the caller of a drain has left the step */
        know_over(j, &last[SLC_LANE_COMMUNICATION], SLC_LANE_COMPUTE, 1, 0);
    derive_pass(j, 1, last);
}

bool slc_validate_surely_over(const slc_validation *j, int later_pass, uint32_t later, int pass, uint32_t item)
{
    if (pass < 0 || !slc_validate_runs(j, pass, item)) return true;
    slc_lane lane = slc_validate_lane(j, item);
    return j->known[later_pass][later].over[lane] > (uint32_t)pass * j->count[lane] + j->ordinal[item];
}

/* ---- What items need ---- */

/* An item whose needs are checked. */
typedef struct {
    const slc_validation *j;
    int pass;
    uint32_t item;
} needy;

/* Requires that `item` of the needy's own step, or of the step `back` before it, has ended. A late item is in the pass
 * after its step's own. */
static sluice_status require(const needy *n, uint32_t item, int back)
{
    const slc_item *items = n->j->program->items;
    int pass = n->pass - items[n->item].late - back + items[item].late;
    char what[128];
    if (pass > n->pass) {
        snprintf(what, sizeof what, "needs %s item %u of its step, which is late", slc_item_kind_name(items[item].kind),
                 item);
        return slc_validate_fault(n->j, n->item, what);
    }
    if (slc_validate_surely_over(n->j, n->pass, n->item, pass, item)) return SLUICE_OK;
    snprintf(what, sizeof what, "may start before %s item %u of the step%s is over%s",
             slc_item_kind_name(items[item].kind), item, back ? " before" : "",
             n->j->passes[1] == SLC_PASS_DRAIN ? " (in a drain)"
             : !n->pass                        ? " (in a first pass)"
                                               : "");
    return slc_validate_fault(n->j, n->item, what);
}

/* Requires the runs of a list that move any of the blocks. */
static sluice_status need_blocks(const needy *n, slc_block_runs list, uint64_t first_block, uint64_t end_block,
                                 int back)
{
    sluice_status status = SLUICE_OK;
    for (uint32_t r = slc_block_run_at(list, first_block);
         !status && r < list.count && list.at[r].first_block < end_block; r++)
        status = require(n, list.at[r].item, back);
    return status;
}

/* Requires every run of a unit; nothing if the unit has no such operation. */
static sluice_status need_all(const needy *n, slc_item_kind kind, uint32_t m, uint32_t u, int back)
{
    return need_blocks(n, slc_validate_list(n->j, kind, m, u, 0), 0, UINT64_MAX, back);
}

/* Requires the runs of a kind, in the step's last micro-batch, on the blocks of the needy's own run. */
static sluice_status need_same(const needy *n, slc_item_kind kind, int back)
{
    const slc_item *mine = &n->j->program->items[n->item];
    return need_blocks(n, slc_validate_list(n->j, kind, n->j->micro_batches - 1, mine->unit, 0), mine->first_block,
                       mine->first_block + mine->block_count, back);
}

static sluice_status need_window(const needy *n, uint32_t u)
{
    const slc_validation *j = n->j;
    const slc_item *slot = &j->program->items[n->item];
    slc_window window;
    bool found = false;
    sluice_status status = SLUICE_OK;
    for (uint32_t w = 0; !status && slc_unit_window(j->job, &j->job->units[u], !j->evaluate, w, &window); w++) {
        if (slot->slot < window.first_slot || slot->slot > window.last_slot) continue;
        const uint32_t m = slc_gathered_in(&j->job->units[u], slot->micro_batch);
        status = need_blocks(n, slc_validate_list(j, SLC_ITEM_GATHER_WINDOW, m, u, w), 0, UINT64_MAX, 0);
        found = true;
    }
    return status || found ? status
                           : slc_validate_fault(j, n->item, "computes with values that nothing gathers for it");
}

static sluice_status need_values(const needy *n, uint32_t u)
{
    const slc_validation *j = n->j;
    uint32_t last = j->micro_batches - 1;
    sluice_status status = j->plan->strategies[u] == SLC_FSDP ? need_window(n, u) : SLUICE_OK;
    if (j->evaluate || !j->job->units[u].trainable) return status;
    if (!status) status = need_all(n, SLC_ITEM_UPDATE, last, u, 1);
    return status ? status : need_all(n, SLC_ITEM_GATHER_VALUE, last, u, 1);
}

/* Requires that the last reader of a gradient has ended before the gradient is written again. */
static sluice_status need_gradient_place(const needy *n, uint32_t u)
{
    uint32_t m = n->j->program->items[n->item].micro_batch, last = n->j->micro_batches - 1;
    if (m) return n->j->job->each ? need_all(n, SLC_ITEM_REDUCE_SCATTER, m - 1, u, 0) : SLUICE_OK;
    sluice_status status = need_all(n, SLC_ITEM_REDUCE_SCATTER, last, u, 1);
    return status ? status : need_all(n, SLC_ITEM_UPDATE, last, u, 1);
}

/* Requires the messages that a slot reads. */
static sluice_status need_messages(const needy *n)
{
    const slc_item *slot = &n->j->program->items[n->item];
    sluice_status status = SLUICE_OK;
    for (uint32_t c = 0; !status && c < n->j->job->channel_count && n->j->message_item; c++)
        if (n->j->job->channels[c].receives && n->j->job->channels[c].slot == slot->slot)
            status = require(n, slc_validate_message_item(n->j, c, slot->micro_batch), 0);
    return status;
}

/* Requires for a table's reduction the gradients of its rows, and for its update that its rows have been sent. */
static sluice_status need_rows(const needy *n, bool receives)
{
    const slc_validation *j = n->j;
    sluice_status status = SLUICE_OK;
    for (uint32_t c = 0; !status && c < j->job->channel_count && j->message_item; c++)
        if (j->job->channels[c].receives == receives && j->job->channels[c].unit == j->program->items[n->item].unit)
            status = require(n, slc_validate_message_item(j, c, j->micro_batches - 1), 0);
    return status;
}

/* Checks what a message is made of: the slot that makes it, or values that the step before has updated. */
static sluice_status check_send(const needy *n)
{
    const slc_validation *j = n->j;
    const slc_item *item = &j->program->items[n->item];
    const slc_stage_channel *channel = &j->job->channels[item->index];
    if (channel->slot != SLC_NONE) return require(n, slc_validate_slot_item(j, item->micro_batch, channel->slot), 0);
    sluice_status status = need_all(n, SLC_ITEM_UPDATE, j->micro_batches - 1, channel->unit, 1);
    return status ? status : need_all(n, SLC_ITEM_GATHER_VALUE, j->micro_batches - 1, channel->unit, 1);
}

static sluice_status check_slot(const needy *n)
{
    const slc_validation *j = n->j;
    uint32_t slot = j->program->items[n->item].slot, layer = slc_slot_layer(j->job, slot);
    bool forward = slc_slot_is_forward(j->job, slot);
    sluice_status status = need_messages(n);
    for (uint32_t i = j->use_start[layer]; !status && i < j->use_start[layer + 1]; i++) {
        uint32_t u = j->uses[i].unit;
        const slc_unit *unit = &j->job->units[u];
        const slc_use *use = &unit->uses[j->uses[i].use];
        if (!(unit->adds_first && use == unit->uses) &&
            (forward || use->backward_value || slc_validate_recomputes(j, layer)))
            status = need_values(n, u);
        if (!status && !forward && unit->trainable) status = need_gradient_place(n, u);
    }
    return status;
}

static sluice_status check_reduction(const needy *n)
{
    const slc_validation *j = n->j;
    const slc_item *mine = &j->program->items[n->item];
    const slc_unit *unit = &j->job->units[mine->unit];
    uint32_t first, last, m = mine->micro_batch;
    slc_unit_gradient_slots(j->job, unit, &first, &last);
    sluice_status status = require(n, slc_validate_slot_item(j, m, last), 0);
    if (!status) status = need_rows(n, true);
    /* rows are added to the sum of the other uses */
    if (!status && unit->role == SLC_UNIT_ROWS) status = need_all(n, SLC_ITEM_REDUCE_SCATTER, m, unit->partner, 0);
    if (status || !m || !j->job->each) return status;
    /* each micro-batch adds to the sum of the one before */
    if (unit->role == SLC_UNIT_SPLIT) status = need_all(n, SLC_ITEM_REDUCE_SCATTER, m - 1, unit->partner, 0);
    return status ? status
                  : need_blocks(n, slc_validate_list(j, SLC_ITEM_REDUCE_SCATTER, m - 1, mine->unit, 0),
                                mine->first_block, mine->first_block + mine->block_count, 0);
}

/* Returns true if the step's agreement must have ended before the unit is updated, or under onebit before it is
 * compressed. */
static bool awaits_agreement(const slc_validation *j, uint32_t u)
{
    return j->job->barrier && !(j->job->norms_barrier && j->plan->strategies[u] == SLC_ONEBIT);
}

/* Checks the agreement, which follows everything that tells it of gradients that are not finite. */
static sluice_status check_agree(const needy *n)
{
    uint32_t last = n->j->micro_batches - 1;
    sluice_status status = SLUICE_OK;
    for (uint32_t u = 0; !status && u < n->j->job->unit_count; u++) {
        status = need_all(n, SLC_ITEM_REDUCE_SCATTER, last, u, 0);
        if (!status) status = need_all(n, SLC_ITEM_ALL_REDUCE, last, u, 0);
        if (!status) status = need_all(n, SLC_ITEM_INSPECT, last, u, 0);
        if (!status && !awaits_agreement(n->j, u)) status = need_all(n, SLC_ITEM_COMPRESS, last, u, 0);
    }
    return status;
}

static sluice_status check_inspect(const needy *n)
{
    sluice_status status = check_reduction(n); /* it needs the same gradient, and may be as late */
    return status ? status : need_same(n, SLC_ITEM_ALL_REDUCE, 0);
}

/* Compressing reads the gradient and changes states and errors, which the update of the previous step reads. */
static sluice_status check_compress(const needy *n)
{
    const slc_validation *j = n->j;
    sluice_status status = check_inspect(n);
    if (!status) status = need_same(n, SLC_ITEM_INSPECT, 0);
    if (!status) status = need_same(n, SLC_ITEM_UPDATE, 1);
    return status || !awaits_agreement(j, j->program->items[n->item].unit) ? status : require(n, j->agree, 0);
}

static sluice_status need_reduced(const needy *n)
{
    sluice_status status = need_same(n, SLC_ITEM_REDUCE_SCATTER, 0);
    return status ? status : need_same(n, SLC_ITEM_ALL_REDUCE, 0);
}

static sluice_status check_update(const needy *n)
{
    const slc_validation *j = n->j;
    const slc_unit *unit = &j->job->units[j->program->items[n->item].unit];
    sluice_status status = need_reduced(n);
    if (!status) status = need_rows(n, false);
    if (!status) status = need_same(n, SLC_ITEM_GATHER_GRADIENT, 0);
    if (!status) status = need_same(n, SLC_ITEM_EXCHANGE, 0);
    if (!status && unit->role == SLC_UNIT_SPLIT)
        status = need_all(n, SLC_ITEM_REDUCE_SCATTER, j->micro_batches - 1, unit->partner, 0);
    return status || !awaits_agreement(j, j->program->items[n->item].unit) ? status : require(n, j->agree, 0);
}

/* Checks a gather. Rows are gathered from where the partner was updated. The rows are known only after the previous
 * micro-batch, and with `each` the lists of its reduction must no longer be in use. */
static sluice_status check_gather(const needy *n)
{
    const slc_validation *j = n->j;
    const slc_item *mine = &j->program->items[n->item];
    const slc_unit *unit = &j->job->units[mine->unit];
    if (j->evaluate) return SLUICE_OK;
    if (unit->role != SLC_UNIT_ROWS) return need_same(n, SLC_ITEM_UPDATE, 1);
    sluice_status status = need_all(n, SLC_ITEM_UPDATE, j->micro_batches - 1, unit->partner, 1);
    if (status || !mine->micro_batch) return status;
    status = require(n, slc_validate_slot_item(j, mine->micro_batch - 1, slc_job_slots(j->job) - 1), 0);
    return status || !j->job->each ? status
                                   : need_all(n, SLC_ITEM_REDUCE_SCATTER, mine->micro_batch - 1, mine->unit, 0);
}

static sluice_status check_needs(const needy *n)
{
    switch (n->j->program->items[n->item].kind) {
    case SLC_ITEM_SLOT: return check_slot(n);
    case SLC_ITEM_REDUCE_SCATTER:
    case SLC_ITEM_ALL_REDUCE: return check_reduction(n);
    case SLC_ITEM_AGREE: return check_agree(n);
    case SLC_ITEM_GATHER_GRADIENT: return need_reduced(n);
    case SLC_ITEM_UPDATE: return check_update(n);
    case SLC_ITEM_INSPECT: return check_inspect(n);
    case SLC_ITEM_COMPRESS: return check_compress(n);
    case SLC_ITEM_EXCHANGE: return need_same(n, SLC_ITEM_COMPRESS, 0);
    case SLC_ITEM_GATHER_VALUE: return need_same(n, SLC_ITEM_UPDATE, 0);
    case SLC_ITEM_GATHER_WINDOW: return check_gather(n);
    case SLC_ITEM_SEND: return check_send(n);
    case SLC_ITEM_RECEIVE: return SLUICE_OK;
    default: return slc_validate_fault(n->j, n->item, "unknown kind");
    }
}

sluice_status slc_validate_data(const slc_validation *j, int pass)
{
    sluice_status status = SLUICE_OK;
    for (uint32_t i = 0; !status && i < j->program->item_count; i++)
        if (slc_validate_runs(j, pass, i)) status = check_needs(&(needy){j, pass, i});
    return status;
}
