/* The plan's independent validator. It derives what each item may rely on when it starts (how many slots and operations
 * have ended, whatever the timing) and checks every need of every item against that: in a normal pass, in a first pass,
 * which leaves late items out, and in a drain, which runs only those.
 * validate_split_test.c and tests/plan/validate_test.c cover this file. */
#include "lib/plan/validate/parts.h"

#include "lib/base/status.h"

#include <stdlib.h>

/* ---- Items by themselves ---- */

static sluice_status check_late(const slc_validation *j, uint32_t i)
{
    const slc_item *item = &j->program->items[i];
    if (!item->late) return SLUICE_OK;
    if (j->evaluate) return slc_validate_fault(j, i, "nothing is late in evaluation");
    if (item->kind == SLC_ITEM_SLOT || item->kind == SLC_ITEM_GATHER_WINDOW)
        return slc_validate_fault(j, i, "cannot be late");
    slc_unit_role role = item->unit == SLC_NONE ? SLC_UNIT_WHOLE : j->job->units[item->unit].role;
    if (role == SLC_UNIT_ROWS || (role == SLC_UNIT_SPLIT && item->kind != SLC_ITEM_GATHER_VALUE))
        return slc_validate_fault(j, i, "cannot be late: the look-up's rows are gathered early in the next step");
    bool ends_step = slc_is_reduction(item->kind) || item->kind == SLC_ITEM_AGREE || item->kind == SLC_ITEM_INSPECT ||
                     (item->kind == SLC_ITEM_COMPRESS && j->job->norms_barrier);
    if (j->job->barrier && ends_step)
        return slc_validate_fault(j, i, "cannot be late after a barrier: the step's end waits for it");
    if (item->micro_batch + 1 != j->micro_batches)
        return slc_validate_fault(j, i, "late in another than the last micro-batch");
    return SLUICE_OK;
}

static sluice_status check_lane(const slc_validation *j, uint32_t i)
{
    const slc_item *item = &j->program->items[i];
    if (!item->on_compute) return SLUICE_OK;
    if (item->kind != SLC_ITEM_UPDATE) return slc_validate_fault(j, i, "is no update, but on the compute lane");
    return j->plan->strategies[item->unit] == SLC_ONEBIT
               ? slc_validate_fault(j, i, "on the compute lane, where no onebit unit is updated")
               : SLUICE_OK;
}

static sluice_status check_blocks(const slc_validation *j, uint32_t i)
{
    const slc_item *item = &j->program->items[i];
    uint64_t blocks = slc_unit_blocks(&j->job->units[item->unit]);
    if (!item->block_count) return slc_validate_fault(j, i, "moves nothing");
    if (item->block_count > blocks || item->first_block > blocks - item->block_count)
        return slc_validate_fault(j, i, "blocks that the unit does not have");
    return SLUICE_OK;
}

/* Checks that there is such an item at all: its kind, unit, micro-batch, window, lane and blocks. slc_validate_once
 * checks how often each occurs. */
static sluice_status check_form(const slc_validation *j, uint32_t i)
{
    const slc_item *item = &j->program->items[i];
    if ((unsigned)item->kind >= SLC_ITEM_KINDS)
        return slc_error(SLUICE_ERR_FORMAT, "invalid plan: %s item %u: no such kind", j->where, i);
    if (item->kind == SLC_ITEM_SLOT) {
        if (item->unit != SLC_NONE) return slc_validate_fault(j, i, "a slot of a unit");
        sluice_status status = check_lane(j, i);
        return status ? status : check_late(j, i);
    }
    if (slc_is_message(item->kind)) return slc_validate_message(j, i);
    if (item->kind == SLC_ITEM_AGREE ? item->unit != SLC_NONE : item->unit >= j->job->unit_count)
        return slc_error(SLUICE_ERR_FORMAT, "invalid plan: %s item %u: there is no unit %u", j->where, i, item->unit);
    if (j->evaluate && item->kind != SLC_ITEM_GATHER_WINDOW)
        return slc_validate_fault(j, i, "has no place in evaluation");
    bool any_micro_batch = slc_is_reduction(item->kind) || item->kind == SLC_ITEM_GATHER_WINDOW;
    uint32_t last = j->micro_batches - 1;
    if (item->micro_batch > last || (!any_micro_batch && item->micro_batch != last))
        return slc_validate_fault(j, i, "in the wrong micro-batch");
    slc_window window;
    if (item->kind == SLC_ITEM_GATHER_WINDOW
            ? !slc_unit_window(j->job, &j->job->units[item->unit], !j->evaluate, item->index, &window)
            : item->index)
        return slc_validate_fault(j, i, "of a window that the unit does not have");
    sluice_status status = check_lane(j, i);
    if (!status) status = check_late(j, i);
    return status || item->kind == SLC_ITEM_AGREE ? status : check_blocks(j, i);
}

static sluice_status check_waits(const slc_validation *j, uint32_t i)
{
    const slc_item *item = &j->program->items[i];
    for (uint32_t a = 0; a < item->after_count; a++) {
        const slc_after *after = &item->after[a];
        if (after->item >= j->program->item_count)
            return slc_validate_fault(j, i, "waits for an item that is not there");
        if (!after->previous && after->item >= i) return slc_validate_fault(j, i, "waits for itself or a later item");
    }
    return SLUICE_OK;
}

static sluice_status check_agreement(slc_validation *j)
{
    uint32_t found = 0;
    j->agree = SLC_NONE;
    for (uint32_t i = 0; i < j->program->item_count; i++) {
        if (j->program->items[i].kind != SLC_ITEM_AGREE) continue;
        j->agree = i;
        found++;
    }
    if (found == (j->evaluate ? 0 : 1)) return SLUICE_OK;
    return slc_error(SLUICE_ERR_FORMAT, "invalid plan: the ranks agree %u times in one %s", found, j->where);
}

/* Slot number `k` of a pass, in the order in which they must come. */
static slc_stage_slot expected_slot(const slc_validation *j, uint32_t k, uint32_t per_pass)
{
    if (!j->evaluate && j->job->stage_slots) return j->job->stage_slots[k];
    return (slc_stage_slot){.micro_batch = k / per_pass, .slot = k % per_pass};
}

static sluice_status check_slots(slc_validation *j)
{
    uint32_t expected = 0, per_pass = j->evaluate ? j->job->layer_count : slc_job_slots(j->job);
    uint32_t total = per_pass * j->micro_batches;
    for (uint32_t i = 0; i < j->program->item_count; i++) {
        const slc_item *item = &j->program->items[i];
        if (item->kind != SLC_ITEM_SLOT) continue;
        const slc_stage_slot wanted =
            expected < total ? expected_slot(j, expected, per_pass) : (slc_stage_slot){.slot = SLC_NONE};
        if (item->micro_batch != wanted.micro_batch || item->slot != wanted.slot)
            return slc_validate_fault(j, i, "slot out of order");
        if (item->index != wanted.task) return slc_validate_fault(j, i, "slot of another task");
        j->slot_item[(size_t)item->micro_batch * per_pass + item->slot] = i;
        expected++;
    }
    if (expected != total)
        return slc_error(SLUICE_ERR_FORMAT, "invalid plan: %s has %u slots of %u", j->where, expected, total);
    return SLUICE_OK;
}

static sluice_status check_items(slc_validation *j)
{
    sluice_status status = check_slots(j);
    for (uint32_t i = 0; !status && i < j->program->item_count; i++) {
        status = check_form(j, i);
        if (!status) status = check_waits(j, i);
    }
    if (!status) status = slc_validate_channels(j);
    return status ? status : check_agreement(j);
}

/* ---- Items among each other ---- */

/* Every two passes that can follow each other. Everything that is shown for items that are not late after a first pass
 * also holds after a full one, where items wait for more; there only the tickets of late items are left to check. */
static const struct {
    slc_pass_kind passes[2];
    bool tickets_only, first_too;
} histories[] = {{{SLC_PASS_FIRST, SLC_PASS_WHOLE}, false, true},
                 {{SLC_PASS_FIRST, SLC_PASS_DRAIN}, false, false},
                 {{SLC_PASS_WHOLE, SLC_PASS_WHOLE}, true, false},
                 {{SLC_PASS_WHOLE, SLC_PASS_DRAIN}, true, false}};

static sluice_status check_needs(slc_validation *j, bool first_too)
{
    sluice_status status = SLUICE_OK;
    for (int pass = first_too ? 0 : 1; !status && pass < 2; pass++) {
        status = slc_validate_data(j, pass);
        if (!status) status = slc_validate_memory(j, pass);
    }
    return status;
}

/* Checks every two passes that can follow each other; without late items all passes are alike, so one pair is enough.
 */
static sluice_status check_histories(slc_validation *j)
{
    slc_validate_addresses *addresses;
    sluice_status status = slc_validate_addresses_create(j, &addresses);
    if (status) return status;
    size_t count = j->has_late ? sizeof histories / sizeof *histories : 1;
    for (size_t h = 0; !status && h < count; h++) {
        j->passes[0] = histories[h].passes[0];
        j->passes[1] = histories[h].passes[1];
        slc_validate_derive(j);
        if (!histories[h].tickets_only) status = check_needs(j, histories[h].first_too);
        if (!status) status = slc_validate_tickets(j, addresses, histories[h].first_too);
    }
    slc_validate_addresses_destroy(addresses);
    return status;
}

static sluice_status check_program(slc_validation *j)
{
    sluice_status status = check_items(j);
    if (status) return status;
    status = slc_validate_index_init(j);
    if (!status) status = slc_validate_once(j);
    if (!status) status = slc_validate_claims(j);
    if (!status) status = check_histories(j);
    slc_validate_index_fini(j);
    return status;
}

static void number_items(slc_validation *j)
{
    for (uint32_t i = 0; i < j->program->item_count; i++) {
        j->ordinal[i] = j->count[slc_validate_lane(j, i)]++;
        j->has_late |= j->program->items[i].late;
    }
}

static sluice_status validate_program(const slc_job *job, const slc_buffer_index *buffers, bool evaluate)
{
    const slc_plan *plan = buffers->plan;
    slc_validation j = {.job = job,
                        .plan = plan,
                        .program = evaluate ? &plan->evaluate : &plan->train,
                        .buffers = buffers,
                        .evaluate = evaluate,
                        .micro_batches = evaluate ? 1 : job->micro_batches,
                        .lanes = SLC_LANE_CHANNELS + job->channel_count,
                        .where = evaluate ? "evaluation" : "step"};
    size_t count = (size_t)j.program->item_count + 1;
    sluice_status status;
    j.slot_item = calloc((size_t)job->micro_batches * slc_job_slots(job) + 1, sizeof *j.slot_item);
    j.ordinal = calloc(count, sizeof *j.ordinal);
    j.known[0] = calloc(count, sizeof **j.known);
    j.known[1] = calloc(count, sizeof **j.known);
    const size_t messages = evaluate ? 0 : (size_t)job->channel_count * job->micro_batches;
    j.message_item = messages ? calloc(messages, sizeof *j.message_item) : NULL;
    if (j.slot_item && j.ordinal && j.known[0] && j.known[1] && (j.message_item || !messages)) {
        number_items(&j);
        status = check_program(&j);
    } else {
        status = slc_error(SLUICE_ERR_MEMORY, "validator");
    }
    free(j.message_item);
    free(j.known[1]);
    free(j.known[0]);
    free(j.ordinal);
    free(j.slot_item);
    return status;
}

/* ---- The plan ---- */

static sluice_status check_choices(const slc_job *job, const slc_plan *plan)
{
    if (plan->unit_count != job->unit_count)
        return slc_error(SLUICE_ERR_FORMAT, "invalid plan: made for %u units, the job has %u", plan->unit_count,
                         job->unit_count);
    for (uint32_t u = 0; u < plan->unit_count; u++) {
        slc_unit_role role = job->units[u].role;
        slc_strategy strategy = plan->strategies[u];
        if ((unsigned)strategy >= SLC_STRATEGIES)
            return slc_error(SLUICE_ERR_FORMAT, "invalid plan: no such strategy of unit %s", job->units[u].name);
        if ((role == SLC_UNIT_ROWS && strategy != SLC_FSDP) ||
            (role == SLC_UNIT_SPLIT && (strategy == SLC_DP || strategy == SLC_ONEBIT)))
            return slc_error(SLUICE_ERR_FORMAT, "invalid plan: unit %s is %s: %s", job->units[u].name,
                             slc_strategy_name(strategy),
                             role == SLC_UNIT_ROWS ? "rows that a look-up touches are always fsdp"
                                                   : "a parameter that is split by its uses is oss, sdp or fsdp");
        if (strategy == SLC_ONEBIT && (!job->compressed || job->each || job->world < 2))
            return slc_error(SLUICE_ERR_FORMAT, "invalid plan: unit %s is onebit %s", job->units[u].name,
                             job->each        ? "while gradients are reduced each micro-batch"
                             : job->world < 2 ? "with one rank"
                                              : "outside of the compressed phase");
    }
    if (!plan->recompute) return SLUICE_OK;
    if (plan->layer_count != job->layer_count)
        return slc_error(SLUICE_ERR_FORMAT, "invalid plan: made for %u layers, the job has %u", plan->layer_count,
                         job->layer_count);
    for (uint32_t l = 0; l < plan->layer_count; l++)
        if (plan->recompute[l] && !(job->can_recompute && job->can_recompute[l]))
            return slc_error(SLUICE_ERR_FORMAT, "invalid plan: layer %s cannot recompute", job->layers[l]);
    return SLUICE_OK;
}

/* A wrong job would make wrong plans look right: each micro-batch runs its slots in ascending order, each slot takes
 * micro-batches in ascending order, and tasks do not go back. */
static sluice_status check_stage_slots(const slc_job *job)
{
    const uint32_t per_pass = slc_job_slots(job), total = per_pass * job->micro_batches;
    if (job->channel_count > SLC_STAGE_CHANNELS_MAX)
        return slc_error(SLUICE_ERR_FORMAT, "invalid job: %u channels of a stage, at most %d can be",
                         job->channel_count, SLC_STAGE_CHANNELS_MAX);
    uint32_t *next = job->stage_slots ? calloc((size_t)per_pass + job->micro_batches + 1, sizeof *next) : NULL;
    if (!job->stage_slots) return SLUICE_OK;
    if (!next) return slc_error(SLUICE_ERR_MEMORY, "validator");
    uint32_t k = 0, task = 0, *next_slot = next + per_pass;
    for (; k < total; k++) {
        const slc_stage_slot *s = &job->stage_slots[k];
        if (s->slot >= per_pass || s->micro_batch >= job->micro_batches || s->task < task ||
            next[s->slot]++ != s->micro_batch || next_slot[s->micro_batch]++ != s->slot)
            break;
        task = s->task;
    }
    free(next);
    return k == total ? SLUICE_OK
                      : slc_error(SLUICE_ERR_FORMAT, "invalid job: slot %u of its stage's order is out of order", k);
}

sluice_status slc_plan_validate(const slc_job *job, const slc_plan *plan)
{
    slc_buffer_index buffers;
    sluice_status status = check_choices(job, plan);
    if (!status) status = check_stage_slots(job);
    if (!status) status = slc_validate_roles(job);
    if (!status) status = slc_validate_left_out(job);
    if (status) return status;
    status = slc_buffer_index_init(&buffers, job, plan);
    if (status) return status;
    status = slc_validate_buffers(job, &buffers);
    if (!status) status = validate_program(job, &buffers, false);
    if (!status) status = validate_program(job, &buffers, true);
    slc_buffer_index_fini(&buffers);
    return status;
}
