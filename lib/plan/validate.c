/* The plan's independent judge. It derives what each item may take for granted when it starts (how many slots and
 * operations are over, whatever the timing) and holds every need of every item against that. */
#include "lib/plan/plan.h"

#include "lib/base/status.h"

#include <stdio.h>
#include <stdlib.h>

/* Counts of finished slots and operations since the beginning of the step before. */
typedef struct {
    uint64_t slots, operations;
} sure;

typedef struct {
    const slc_job *job;
    const slc_plan *plan;
    const slc_program *program;
    bool evaluate;
    const char *where;
    uint32_t *ordinal;           /* of an item in its lane */
    uint64_t slots, operations;  /* a step */
    sure *known[2];              /* at an item's start, in the step before and in this one */
} judge;

static bool is_slot(const judge *j, uint32_t item)
{
    return j->program->items[item].kind == SLC_ITEM_SLOT;
}

static sluice_status fault(const judge *j, uint32_t item, const char *what)
{
    const slc_item *i = &j->program->items[item];
    const char *unit = i->unit == SLC_NONE ? "-" : j->job->units[i->unit].name;
    return slc_error(SLUICE_ERR_FORMAT, "invalid plan: %s item %u (%s, micro-batch %u, slot %u, unit %s): %s", j->where,
                     item, slc_item_kind_name(i->kind), i->micro_batch, i->slot, unit, what);
}

static void know(sure *known, sure more)
{
    if (more.slots > known->slots) known->slots = more.slots;
    if (more.operations > known->operations) known->operations = more.operations;
}

/* What holds once `item` of step `t` is over. Operations are counted complete in order. */
static sure when_over(const judge *j, int t, uint32_t item)
{
    sure known = j->known[t][item];
    if (is_slot(j, item))
        know(&known, (sure){t * j->slots + j->ordinal[item] + 1, 0});
    else
        know(&known, (sure){0, t * j->operations + j->ordinal[item] + 1});
    return known;
}

static sluice_status derive_step(judge *j, int t)
{
    sure lane[2] = {{0, 0}, {0, 0}}; /* at the start of the last slot, of the last operation */
    if (t)
        for (uint32_t i = 0; i < j->program->item_count; i++) know(&lane[!is_slot(j, i)], j->known[0][i]);
    for (uint32_t i = 0; i < j->program->item_count; i++) {
        const slc_item *item = &j->program->items[i];
        sure known = lane[!is_slot(j, i)];
        if (is_slot(j, i)) know(&known, (sure){t * j->slots + j->ordinal[i], 0});
        for (uint32_t a = 0; a < item->after_count; a++) {
            const slc_after *after = &item->after[a];
            if (after->item >= j->program->item_count) return fault(j, i, "waits for an item that is not there");
            if (!after->previous && after->item >= i) return fault(j, i, "waits for itself or a later item");
            if (after->previous && !t) continue;
            know(&known, when_over(j, after->previous ? 0 : t, after->item));
        }
        j->known[t][i] = lane[!is_slot(j, i)] = known;
    }
    return SLUICE_OK;
}

/* Is `item` (of this step, or of the one before) surely over when `later` of this step starts? */
static bool surely_over(const judge *j, uint32_t later, uint32_t item, bool previous)
{
    sure known = j->known[1][later];
    uint64_t step = previous ? 0 : 1;
    return is_slot(j, item) ? known.slots > step * j->slots + j->ordinal[item]
                            : known.operations > step * j->operations + j->ordinal[item];
}

static sluice_status check_slots(const judge *j)
{
    uint32_t expected = 0, per_pass = j->evaluate ? j->job->layer_count : slc_job_slots(j->job);
    uint32_t total = per_pass * (j->evaluate ? 1 : j->job->micro_batches);
    for (uint32_t i = 0; i < j->program->item_count; i++) {
        if (!is_slot(j, i)) continue;
        const slc_item *item = &j->program->items[i];
        if (expected >= total || item->micro_batch != expected / per_pass || item->slot != expected % per_pass)
            return fault(j, i, "slot out of order");
        expected++;
    }
    if (expected != total)
        return slc_error(SLUICE_ERR_FORMAT, "invalid plan: %s has %u slots of %u", j->where, expected, total);
    return SLUICE_OK;
}

/* Blocks of a unit moved by operations of a kind: each exactly once if `wanted`, else none. */
static sluice_status check_once(const judge *j, slc_item_kind kind, uint32_t m, uint32_t u, uint32_t index, bool wanted)
{
    uint64_t blocks = slc_unit_blocks(&j->job->units[u]);
    uint8_t *seen = calloc(blocks, 1);
    if (!seen) return slc_error(SLUICE_ERR_MEMORY, "validator");
    sluice_status status = SLUICE_OK;
    uint64_t moved = 0;
    for (uint32_t i = 0; !status && i < j->program->item_count; i++) {
        const slc_item *item = &j->program->items[i];
        if (item->kind != kind || item->micro_batch != m || item->unit != u || item->index != index) continue;
        if (item->first_block + item->block_count > blocks) status = fault(j, i, "blocks that the unit does not have");
        for (uint64_t b = item->first_block; !status && b < item->first_block + item->block_count; b++, moved++)
            if (seen[b]++) status = fault(j, i, "moves a block twice");
    }
    if (!status && moved != (wanted ? blocks : 0))
        status = slc_error(SLUICE_ERR_FORMAT, "invalid plan: %s: unit %s, micro-batch %u: %s moves %llu of %llu blocks",
                           j->where, j->job->units[u].name, m, slc_item_kind_name(kind), (unsigned long long)moved,
                           (unsigned long long)(wanted ? blocks : 0));
    free(seen);
    return status;
}

static sluice_status check_unit_once(const judge *j, uint32_t u)
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
static sluice_status require(const judge *j, uint32_t later, slc_item_kind kind, uint32_t m, uint32_t u, bool previous)
{
    for (uint32_t i = 0; i < j->program->item_count; i++) {
        const slc_item *item = &j->program->items[i];
        if (item->kind != kind || item->unit != u || (m != SLC_NONE && item->micro_batch != m)) continue;
        if (!surely_over(j, later, i, previous)) {
            char what[96];
            snprintf(what, sizeof what, "may start before %s item %u%s is over", slc_item_kind_name(kind), i,
                     previous ? " of the step before" : "");
            return fault(j, later, what);
        }
    }
    return SLUICE_OK;
}

static sluice_status check_window(const judge *j, uint32_t later, uint32_t u, uint32_t m, uint32_t slot)
{
    slc_window window;
    for (uint32_t w = 0; slc_unit_window(j->job, &j->job->units[u], !j->evaluate, w, &window); w++) {
        if (slot < window.first_slot || slot > window.last_slot) continue;
        for (uint32_t i = 0; i < j->program->item_count; i++) {
            const slc_item *item = &j->program->items[i];
            if (item->kind == SLC_ITEM_GATHER_WINDOW && item->unit == u && item->micro_batch == m && item->index == w &&
                !surely_over(j, later, i, false))
                return fault(j, later, "computes before its values are gathered");
        }
    }
    return SLUICE_OK;
}

static sluice_status check_slot_data(const judge *j, uint32_t i, uint32_t u)
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

static sluice_status check_gradient_ready(const judge *j, uint32_t i)
{
    const slc_item *item = &j->program->items[i];
    uint32_t first, last;
    slc_unit_gradient_slots(j->job, &j->job->units[item->unit], &first, &last);
    for (uint32_t s = 0; s < j->program->item_count; s++) {
        const slc_item *slot = &j->program->items[s];
        if (slot->kind == SLC_ITEM_SLOT && slot->micro_batch == item->micro_batch && slot->slot == last &&
            !surely_over(j, i, s, false))
            return fault(j, i, "reduces a gradient that may still grow");
    }
    return SLUICE_OK;
}

static sluice_status check_reduced(const judge *j, uint32_t i, uint32_t u)
{
    sluice_status status = require(j, i, SLC_ITEM_REDUCE_SCATTER, SLC_NONE, u, false);
    return status ? status : require(j, i, SLC_ITEM_ALL_REDUCE, SLC_NONE, u, false);
}

static sluice_status check_data(const judge *j, uint32_t i)
{
    const slc_item *item = &j->program->items[i];
    sluice_status status = SLUICE_OK;
    switch (item->kind) {
    case SLC_ITEM_SLOT:
        for (uint32_t u = 0; !status && u < j->job->unit_count; u++) status = check_slot_data(j, i, u);
        return status;
    case SLC_ITEM_REDUCE_SCATTER:
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
    default: return fault(j, i, "unknown kind");
    }
}

/* Is the whole of a buffer claimed while `item` runs? */
static bool alive(const judge *j, slc_buffer_kind kind, uint32_t unit, uint32_t index, uint32_t item)
{
    uint32_t buffer = slc_plan_buffer(j->plan, kind, unit, index);
    if (buffer == SLC_NONE) return false;
    uint64_t bytes = j->plan->buffers[buffer].bytes;
    for (uint32_t s = 0; s < j->plan->static_count; s++)
        if (j->plan->statics[s].buffer == buffer) return j->plan->statics[s].end_byte == bytes;
    for (uint32_t c = 0; c < j->program->claim_count; c++) {
        const slc_claim *claim = &j->program->claims[c];
        if (claim->buffer == buffer && claim->from <= item && item <= claim->to && !claim->first_byte &&
            claim->end_byte == bytes)
            return true;
    }
    return false;
}

static sluice_status check_slot_memory(const judge *j, uint32_t i)
{
    const slc_item *item = &j->program->items[i];
    uint32_t layer = slc_slot_layer(j->job, item->slot);
    bool forward = slc_slot_is_forward(j->job, item->slot);
    for (uint32_t u = 0; u < j->job->unit_count; u++) {
        const slc_unit *unit = &j->job->units[u];
        slc_window window;
        for (uint32_t w = 0;
             j->plan->strategies[u] == SLC_FSDP && slc_unit_window(j->job, unit, !j->evaluate, w, &window); w++)
            if (window.first_slot <= item->slot && item->slot <= window.last_slot &&
                !alive(j, SLC_BUFFER_GATHERED, u, w, i))
                return fault(j, i, "gathered values are not in memory");
        for (uint32_t n = 0; !forward && unit->trainable && n < unit->use_count; n++)
            if (unit->uses[n].layer == layer && !alive(j, SLC_BUFFER_GRADIENT, u, 0, i))
                return fault(j, i, "its gradient is not in memory");
    }
    for (uint32_t a = 0; a < j->job->activation_count; a++) {
        const slc_activation_life *life = &j->job->activations[a];
        uint32_t last = j->evaluate ? life->last_forward_slot : life->last_slot;
        if (life->first_slot <= item->slot && item->slot <= last && !alive(j, SLC_BUFFER_ACTIVATION, SLC_NONE, a, i))
            return fault(j, i, "an activation is not in memory");
    }
    for (uint32_t w = 0; w < j->job->workspace_count; w++)
        if (j->job->workspaces[w].layer == layer && !alive(j, SLC_BUFFER_WORKSPACE, SLC_NONE, w, i))
            return fault(j, i, "a workspace is not in memory");
    return SLUICE_OK;
}

static sluice_status check_memory(const judge *j, uint32_t i)
{
    const slc_item *item = &j->program->items[i];
    uint32_t u = item->unit;
    bool moved = slc_plan_buffer(j->plan, SLC_BUFFER_REDUCED, u, 0) != SLC_NONE;
    bool ok = true;
    switch (item->kind) {
    case SLC_ITEM_SLOT: return check_slot_memory(j, i);
    case SLC_ITEM_REDUCE_SCATTER:
        ok = alive(j, SLC_BUFFER_GRADIENT, u, 0, i) && (!moved || alive(j, SLC_BUFFER_REDUCED, u, 0, i));
        break;
    case SLC_ITEM_ALL_REDUCE: ok = alive(j, SLC_BUFFER_GRADIENT, u, 0, i); break;
    case SLC_ITEM_GATHER_GRADIENT:
        ok = alive(j, SLC_BUFFER_GRADIENT, u, 0, i) && alive(j, SLC_BUFFER_REDUCED, u, 0, i);
        break;
    case SLC_ITEM_UPDATE:
        ok = alive(j, moved && j->plan->strategies[u] != SLC_DP ? SLC_BUFFER_REDUCED : SLC_BUFFER_GRADIENT, u, 0, i);
        break;
    case SLC_ITEM_GATHER_WINDOW: ok = alive(j, SLC_BUFFER_GATHERED, u, item->index, i); break;
    default: break;
    }
    return ok ? SLUICE_OK : fault(j, i, "a buffer that it touches is not in memory");
}

static bool overlap(const slc_plan *plan, const slc_claim *a, const slc_claim *b)
{
    uint64_t at = plan->buffers[a->buffer].offset, bt = plan->buffers[b->buffer].offset;
    return at + a->first_byte < bt + b->end_byte && bt + b->first_byte < at + a->end_byte;
}

static sluice_status check_claim(const judge *j, uint32_t c)
{
    const slc_claim *mine = &j->program->claims[c];
    if (mine->from > mine->to || mine->to >= j->program->item_count) return fault(j, 0, "a claim outside of the order");
    if (j->plan->buffers[mine->buffer].offset + mine->end_byte > j->plan->arena_bytes)
        return fault(j, mine->from, "a claim beyond the arena");
    for (uint32_t s = 0; s < j->plan->static_count; s++)
        if (overlap(j->plan, mine, &j->plan->statics[s])) return fault(j, mine->from, "a claim over resident memory");
    for (uint32_t d = 0; d < j->program->claim_count; d++) {
        const slc_claim *other = &j->program->claims[d];
        if (!overlap(j->plan, mine, other)) continue;
        if (d != c && mine->from <= other->to && other->from <= mine->to)
            return fault(j, mine->from, "two claims overlap in address and time");
        if (other->to < mine->from && !surely_over(j, mine->from, other->to, false))
            return fault(j, mine->from, "claims memory that an earlier item may still hold: a ticket is missing");
        if (other->to >= mine->from && !surely_over(j, mine->from, other->to, true))
            return fault(j, mine->from, "claims memory that the step before may still hold: a ticket is missing");
    }
    return SLUICE_OK;
}

static sluice_status check_statics(const slc_plan *plan)
{
    for (uint32_t a = 0; a < plan->static_count; a++) {
        if (plan->buffers[plan->statics[a].buffer].offset + plan->statics[a].end_byte > plan->arena_bytes)
            return slc_error(SLUICE_ERR_FORMAT, "invalid plan: a resident buffer lies beyond the arena");
        for (uint32_t b = a + 1; b < plan->static_count; b++)
            if (overlap(plan, &plan->statics[a], &plan->statics[b]))
                return slc_error(SLUICE_ERR_FORMAT, "invalid plan: two resident buffers overlap");
    }
    return SLUICE_OK;
}

static sluice_status check_all(judge *j)
{
    sluice_status status = check_slots(j);
    for (int t = 0; !status && t < 2; t++) status = derive_step(j, t);
    for (uint32_t u = 0; !status && u < j->job->unit_count; u++) status = check_unit_once(j, u);
    for (uint32_t i = 0; !status && i < j->program->item_count; i++) {
        status = check_data(j, i);
        if (!status) status = check_memory(j, i);
    }
    for (uint32_t c = 0; !status && c < j->program->claim_count; c++) status = check_claim(j, c);
    return status;
}

static sluice_status validate_program(const slc_job *job, const slc_plan *plan, bool evaluate)
{
    judge j = {.job = job,
               .plan = plan,
               .program = evaluate ? &plan->evaluate : &plan->train,
               .evaluate = evaluate,
               .where = evaluate ? "evaluation" : "step"};
    uint32_t count = j.program->item_count;
    sluice_status status = SLUICE_ERR_MEMORY;
    j.ordinal = calloc(count + 1, sizeof *j.ordinal);
    j.known[0] = calloc(count + 1, sizeof **j.known);
    j.known[1] = calloc(count + 1, sizeof **j.known);
    if (!j.ordinal || !j.known[0] || !j.known[1]) {
        slc_error(status, "validator");
        goto out;
    }
    for (uint32_t i = 0; i < count; i++)
        j.ordinal[i] = (uint32_t)(is_slot(&j, i) ? j.slots++ : j.operations++);
    status = check_all(&j);

out:
    free(j.known[1]);
    free(j.known[0]);
    free(j.ordinal);
    return status;
}

sluice_status slc_plan_validate(const slc_job *job, const slc_plan *plan)
{
    if (plan->unit_count != job->unit_count)
        return slc_error(SLUICE_ERR_FORMAT, "invalid plan: made for %u units, the job has %u", plan->unit_count,
                         job->unit_count);
    sluice_status status = check_statics(plan);
    if (!status) status = validate_program(job, plan, false);
    if (!status) status = validate_program(job, plan, true);
    return status;
}
