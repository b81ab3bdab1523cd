/* The plan's independent judge. It derives what each item may take for granted when it starts (how many slots and
 * operations are over, whatever the timing) and holds every need of every item against that. */
#include "lib/plan/judge.h"

#include "lib/base/status.h"

#include <stdio.h>
#include <stdlib.h>

sluice_status slc_judge_fault(const slc_judge *j, uint32_t item, const char *what)
{
    const slc_item *i = &j->program->items[item];
    const char *unit = i->unit < j->job->unit_count ? j->job->units[i->unit].name : "-";
    return slc_error(SLUICE_ERR_FORMAT, "invalid plan: %s item %u (%s, micro-batch %u, slot %u, unit %s): %s", j->where,
                     item, slc_item_kind_name(i->kind), i->micro_batch, i->slot, unit, what);
}

static void know(slc_sure *known, slc_sure more)
{
    if (more.slots > known->slots) known->slots = more.slots;
    if (more.operations > known->operations) known->operations = more.operations;
}

/* What holds once `item` of step `t` is over. Operations are counted complete in order. */
static slc_sure when_over(const slc_judge *j, int t, uint32_t item)
{
    slc_sure known = j->known[t][item];
    if (slc_judge_is_slot(j, item))
        know(&known, (slc_sure){t * j->slots + j->ordinal[item] + 1, 0});
    else
        know(&known, (slc_sure){0, t * j->operations + j->ordinal[item] + 1});
    return known;
}

static sluice_status derive_step(slc_judge *j, int t)
{
    slc_sure lane[2] = {{0, 0}, {0, 0}}; /* at the start of the last slot, of the last operation */
    if (t)
        for (uint32_t i = 0; i < j->program->item_count; i++) know(&lane[!slc_judge_is_slot(j, i)], j->known[0][i]);
    for (uint32_t i = 0; i < j->program->item_count; i++) {
        const slc_item *item = &j->program->items[i];
        slc_sure known = lane[!slc_judge_is_slot(j, i)];
        if (slc_judge_is_slot(j, i)) know(&known, (slc_sure){t * j->slots + j->ordinal[i], 0});
        for (uint32_t a = 0; a < item->after_count; a++) {
            const slc_after *after = &item->after[a];
            if (after->item >= j->program->item_count)
                return slc_judge_fault(j, i, "waits for an item that is not there");
            if (!after->previous && after->item >= i) return slc_judge_fault(j, i, "waits for itself or a later item");
            if (after->previous && !t) continue;
            know(&known, when_over(j, after->previous ? 0 : t, after->item));
        }
        j->known[t][i] = lane[!slc_judge_is_slot(j, i)] = known;
    }
    return SLUICE_OK;
}

bool slc_judge_surely_over(const slc_judge *j, uint32_t later, uint32_t item, bool previous)
{
    slc_sure known = j->known[1][later];
    uint64_t step = previous ? 0 : 1;
    return slc_judge_is_slot(j, item) ? known.slots > step * j->slots + j->ordinal[item]
                                      : known.operations > step * j->operations + j->ordinal[item];
}

/* Is there such an operation at all? How often each is there is for check_unit_once. */
static sluice_status check_form(const slc_judge *j, uint32_t i)
{
    const slc_item *item = &j->program->items[i];
    uint32_t last = j->evaluate ? 0 : j->job->micro_batches - 1;
    bool each_micro_batch = item->kind == SLC_ITEM_REDUCE_SCATTER || item->kind == SLC_ITEM_ALL_REDUCE ||
                            item->kind == SLC_ITEM_GATHER_WINDOW;
    if ((unsigned)item->kind >= SLC_ITEM_KINDS)
        return slc_error(SLUICE_ERR_FORMAT, "invalid plan: %s item %u: no such kind", j->where, i);
    if (item->kind == SLC_ITEM_SLOT)
        return item->unit == SLC_NONE ? SLUICE_OK : slc_judge_fault(j, i, "a slot of a unit");
    if (item->kind == SLC_ITEM_AGREE ? item->unit != SLC_NONE : item->unit >= j->job->unit_count)
        return slc_error(SLUICE_ERR_FORMAT, "invalid plan: %s item %u: there is no unit %u", j->where, i, item->unit);
    if (j->evaluate && item->kind != SLC_ITEM_GATHER_WINDOW) return slc_judge_fault(j, i, "has no place in evaluation");
    if (item->micro_batch > last || (!each_micro_batch && item->micro_batch != last))
        return slc_judge_fault(j, i, "in the wrong micro-batch");
    slc_window window;
    if (item->kind == SLC_ITEM_GATHER_WINDOW
            ? !slc_unit_window(j->job, &j->job->units[item->unit], !j->evaluate, item->index, &window)
            : item->index)
        return slc_judge_fault(j, i, "of a window that the unit does not have");
    if (item->kind != SLC_ITEM_AGREE && !item->block_count) return slc_judge_fault(j, i, "moves nothing");
    return SLUICE_OK;
}

static sluice_status check_agreement(const slc_judge *j)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < j->program->item_count; i++) found += j->program->items[i].kind == SLC_ITEM_AGREE;
    if (found == (j->evaluate ? 0 : 1)) return SLUICE_OK;
    return slc_error(SLUICE_ERR_FORMAT, "invalid plan: the ranks agree %u times in one %s", found, j->where);
}

static sluice_status check_slots(slc_judge *j)
{
    uint32_t expected = 0, per_pass = j->evaluate ? j->job->layer_count : slc_job_slots(j->job);
    uint32_t total = per_pass * (j->evaluate ? 1 : j->job->micro_batches);
    for (uint32_t i = 0; i < j->program->item_count; i++) {
        if (!slc_judge_is_slot(j, i)) continue;
        const slc_item *item = &j->program->items[i];
        if (expected >= total || item->micro_batch != expected / per_pass || item->slot != expected % per_pass)
            return slc_judge_fault(j, i, "slot out of order");
        j->slot_item[expected++] = i;
    }
    if (expected != total)
        return slc_error(SLUICE_ERR_FORMAT, "invalid plan: %s has %u slots of %u", j->where, expected, total);
    return SLUICE_OK;
}

/* Blocks of a unit moved by operations of a kind: each exactly once if `wanted`, else none. */
static sluice_status check_once(const slc_judge *j, slc_item_kind kind, uint32_t m, uint32_t u, uint32_t index,
                                bool wanted)
{
    uint64_t blocks = slc_unit_blocks(&j->job->units[u]);
    uint8_t *seen = calloc(blocks, 1);
    if (!seen) return slc_error(SLUICE_ERR_MEMORY, "validator");
    sluice_status status = SLUICE_OK;
    uint64_t moved = 0;
    for (uint32_t i = 0; !status && i < j->program->item_count; i++) {
        const slc_item *item = &j->program->items[i];
        if (item->kind != kind || item->micro_batch != m || item->unit != u || item->index != index) continue;
        if (item->block_count > blocks || item->first_block > blocks - item->block_count)
            status = slc_judge_fault(j, i, "blocks that the unit does not have");
        for (uint64_t b = item->first_block; !status && b < item->first_block + item->block_count; b++, moved++)
            if (seen[b]++) status = slc_judge_fault(j, i, "moves a block twice");
    }
    if (!status && moved != (wanted ? blocks : 0))
        status = slc_error(SLUICE_ERR_FORMAT, "invalid plan: %s: unit %s, micro-batch %u: %s moves %llu of %llu blocks",
                           j->where, j->job->units[u].name, m, slc_item_kind_name(kind), (unsigned long long)moved,
                           (unsigned long long)(wanted ? blocks : 0));
    free(seen);
    return status;
}

static sluice_status check_unit_once(const slc_judge *j, uint32_t u)
{
    const slc_unit *unit = &j->job->units[u];
    slc_strategy k = j->plan->strategies[u];
    uint32_t last = j->evaluate ? 0 : j->job->micro_batches - 1;
    bool train = unit->trainable && !j->evaluate;
    sluice_status status = SLUICE_OK;
    for (uint32_t m = 0; !status && m <= last; m++) {
        bool reduced = train && (j->job->each || m == last), all = k == SLC_DP && !j->job->each;
        status = check_once(j, SLC_ITEM_REDUCE_SCATTER, m, u, 0, reduced && !all);
        if (!status) status = check_once(j, SLC_ITEM_ALL_REDUCE, m, u, 0, reduced && all);
        slc_window window;
        for (uint32_t w = 0; !status && slc_unit_window(j->job, unit, !j->evaluate, w, &window); w++)
            status = check_once(j, SLC_ITEM_GATHER_WINDOW, m, u, w, k == SLC_FSDP);
    }
    if (!status) status = check_once(j, SLC_ITEM_UPDATE, last, u, 0, train);
    if (!status) status = check_once(j, SLC_ITEM_GATHER_VALUE, last, u, 0, train && (k == SLC_OSS || k == SLC_SDP));
    if (!status) status = check_once(j, SLC_ITEM_GATHER_GRADIENT, last, u, 0, train && k == SLC_DP && j->job->each);
    return status;
}

/* Every operation of `kind` on unit `u` (in micro-batch m, or SLC_NONE: any) must be over before `later` starts. */
static sluice_status require(const slc_judge *j, uint32_t later, slc_item_kind kind, uint32_t m, uint32_t u,
                             bool previous)
{
    for (uint32_t i = 0; i < j->program->item_count; i++) {
        const slc_item *item = &j->program->items[i];
        if (item->kind != kind || item->unit != u || (m != SLC_NONE && item->micro_batch != m)) continue;
        if (!slc_judge_surely_over(j, later, i, previous)) {
            char what[96];
            snprintf(what, sizeof what, "may start before %s item %u%s is over", slc_item_kind_name(kind), i,
                     previous ? " of the step before" : "");
            return slc_judge_fault(j, later, what);
        }
    }
    return SLUICE_OK;
}

static sluice_status check_window(const slc_judge *j, uint32_t later, uint32_t u, uint32_t m, uint32_t slot)
{
    slc_window window;
    for (uint32_t w = 0; slc_unit_window(j->job, &j->job->units[u], !j->evaluate, w, &window); w++) {
        if (slot < window.first_slot || slot > window.last_slot) continue;
        for (uint32_t i = 0; i < j->program->item_count; i++) {
            const slc_item *item = &j->program->items[i];
            if (item->kind == SLC_ITEM_GATHER_WINDOW && item->unit == u && item->micro_batch == m && item->index == w &&
                !slc_judge_surely_over(j, later, i, false))
                return slc_judge_fault(j, later, "computes before its values are gathered");
        }
    }
    return SLUICE_OK;
}

static sluice_status check_slot_data(const slc_judge *j, uint32_t i, uint32_t u)
{
    const slc_item *item = &j->program->items[i];
    const slc_unit *unit = &j->job->units[u];
    slc_strategy k = j->plan->strategies[u];
    uint32_t layer = slc_slot_layer(j->job, item->slot);
    bool forward = slc_slot_is_forward(j->job, item->slot);
    for (uint32_t n = 0; n < unit->use_count; n++) {
        if (unit->uses[n].layer != layer) continue;
        sluice_status status = SLUICE_OK;
        if (forward || unit->uses[n].backward_value) {
            status = check_window(j, i, u, item->micro_batch, item->slot);
            if (!status && !j->evaluate && unit->trainable) status = require(j, i, SLC_ITEM_UPDATE, SLC_NONE, u, true);
            if (!status && !j->evaluate) status = require(j, i, SLC_ITEM_GATHER_VALUE, SLC_NONE, u, true);
        }
        if (!status && !forward && unit->trainable) {
            bool resident = k == SLC_DP || k == SLC_OSS;
            if (resident) status = require(j, i, SLC_ITEM_UPDATE, SLC_NONE, u, true);
            if (!status && resident && j->job->each && item->micro_batch)
                status = require(j, i, SLC_ITEM_REDUCE_SCATTER, item->micro_batch - 1, u, false);
        }
        if (status) return status;
    }
    return SLUICE_OK;
}

static sluice_status check_gradient_ready(const slc_judge *j, uint32_t i)
{
    const slc_item *item = &j->program->items[i];
    uint32_t first, last;
    slc_unit_gradient_slots(j->job, &j->job->units[item->unit], &first, &last);
    for (uint32_t s = 0; s < j->program->item_count; s++) {
        const slc_item *slot = &j->program->items[s];
        if (slot->kind == SLC_ITEM_SLOT && slot->micro_batch == item->micro_batch && slot->slot == last &&
            !slc_judge_surely_over(j, i, s, false))
            return slc_judge_fault(j, i, "reduces a gradient that may still grow");
    }
    return SLUICE_OK;
}

static sluice_status check_reduced(const slc_judge *j, uint32_t i, uint32_t u)
{
    sluice_status status = require(j, i, SLC_ITEM_REDUCE_SCATTER, SLC_NONE, u, false);
    return status ? status : require(j, i, SLC_ITEM_ALL_REDUCE, SLC_NONE, u, false);
}

static sluice_status check_data(const slc_judge *j, uint32_t i)
{
    const slc_item *item = &j->program->items[i];
    sluice_status status = SLUICE_OK;
    switch (item->kind) {
    case SLC_ITEM_SLOT:
        for (uint32_t u = 0; !status && u < j->job->unit_count; u++) status = check_slot_data(j, i, u);
        return status;
    case SLC_ITEM_REDUCE_SCATTER: /* each adds to what the one before left */
        if (item->micro_batch && j->job->each)
            status = require(j, i, SLC_ITEM_REDUCE_SCATTER, item->micro_batch - 1, item->unit, false);
        return status ? status : check_gradient_ready(j, i);
    case SLC_ITEM_ALL_REDUCE: return check_gradient_ready(j, i);
    case SLC_ITEM_AGREE:
        for (uint32_t u = 0; !status && u < j->job->unit_count; u++) status = check_reduced(j, i, u);
        return status;
    case SLC_ITEM_GATHER_GRADIENT: return check_reduced(j, i, item->unit);
    case SLC_ITEM_UPDATE:
        status = check_reduced(j, i, item->unit);
        if (!status) status = require(j, i, SLC_ITEM_GATHER_GRADIENT, SLC_NONE, item->unit, false);
        if (!status && j->job->barrier) status = require(j, i, SLC_ITEM_AGREE, SLC_NONE, SLC_NONE, false);
        return status;
    case SLC_ITEM_GATHER_VALUE: return require(j, i, SLC_ITEM_UPDATE, SLC_NONE, item->unit, false);
    case SLC_ITEM_GATHER_WINDOW:
        return j->evaluate ? SLUICE_OK : require(j, i, SLC_ITEM_UPDATE, SLC_NONE, item->unit, true);
    default: return slc_judge_fault(j, i, "unknown kind");
    }
}

static sluice_status check_all(slc_judge *j)
{
    sluice_status status = check_slots(j);
    for (uint32_t i = 0; !status && i < j->program->item_count; i++) status = check_form(j, i);
    for (int t = 0; !status && t < 2; t++) status = derive_step(j, t);
    if (!status) status = check_agreement(j);
    for (uint32_t u = 0; !status && u < j->job->unit_count; u++) status = check_unit_once(j, u);
    for (uint32_t i = 0; !status && i < j->program->item_count; i++) status = check_data(j, i);
    return status ? status : slc_judge_memory(j);
}

static sluice_status validate_program(const slc_job *job, const slc_plan *plan, bool evaluate)
{
    slc_judge j = {.job = job,
                   .plan = plan,
                   .program = evaluate ? &plan->evaluate : &plan->train,
                   .evaluate = evaluate,
                   .where = evaluate ? "evaluation" : "step"};
    size_t count = (size_t)j.program->item_count + 1;
    sluice_status status;
    j.slot_item = calloc((size_t)job->micro_batches * slc_job_slots(job) + 1, sizeof *j.slot_item);
    j.ordinal = calloc(count, sizeof *j.ordinal);
    j.known[0] = calloc(count, sizeof **j.known);
    j.known[1] = calloc(count, sizeof **j.known);
    if (!j.slot_item || !j.ordinal || !j.known[0] || !j.known[1]) {
        status = slc_error(SLUICE_ERR_MEMORY, "validator");
        goto out;
    }
    for (uint32_t i = 0; i < j.program->item_count; i++)
        j.ordinal[i] = (uint32_t)(slc_judge_is_slot(&j, i) ? j.slots++ : j.operations++);
    status = check_all(&j);

out:
    free(j.known[1]);
    free(j.known[0]);
    free(j.ordinal);
    free(j.slot_item);
    return status;
}

sluice_status slc_plan_validate(const slc_job *job, const slc_plan *plan)
{
    if (plan->unit_count != job->unit_count)
        return slc_error(SLUICE_ERR_FORMAT, "invalid plan: made for %u units, the job has %u", plan->unit_count,
                         job->unit_count);
    sluice_status status = slc_judge_buffers(job, plan);
    if (!status) status = validate_program(job, plan, false);
    if (!status) status = validate_program(job, plan, true);
    return status;
}
