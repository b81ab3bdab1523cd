/* The validator's check of a stage's messages: which there must be, and in which order.
 * sched/pipeline/stage_job_test.c covers this file. */
#include "lib/plan/validate/parts.h"

#include "lib/base/status.h"

sluice_status slc_validate_message(const slc_validation *j, uint32_t i)
{
    const slc_item *item = &j->program->items[i];
    if (j->evaluate) return slc_validate_fault(j, i, "has no place in evaluation");
    if (item->index >= j->job->channel_count)
        return slc_validate_fault(j, i, "on a channel that the stage does not have");
    if (j->job->channels[item->index].receives != (item->kind == SLC_ITEM_RECEIVE))
        return slc_validate_fault(j, i, "against the direction of its channel");
    if (item->unit != SLC_NONE || item->block_count || item->on_compute || item->late)
        return slc_validate_fault(j, i, "a message of a unit, late, or on the compute lane");
    return SLUICE_OK;
}

sluice_status slc_validate_channels(slc_validation *j)
{
    uint32_t next[SLC_STAGE_CHANNELS_MAX] = {0};
    for (uint32_t i = 0; i < j->program->item_count && j->message_item; i++) {
        const slc_item *item = &j->program->items[i];
        if (!slc_is_message(item->kind)) continue;
        if (item->micro_batch != next[item->index] || item->micro_batch >= j->micro_batches)
            return slc_validate_fault(j, i, "a message out of order");
        j->message_item[(size_t)item->index * j->micro_batches + next[item->index]++] = i;
    }
    for (uint32_t c = 0; c < j->job->channel_count && j->message_item; c++)
        if (next[c] != j->micro_batches)
            return slc_error(SLUICE_ERR_FORMAT, "invalid plan: channel %u has %u messages for %u micro-batches",
                             j->job->channels[c].number, next[c], j->micro_batches);
    return SLUICE_OK;
}
