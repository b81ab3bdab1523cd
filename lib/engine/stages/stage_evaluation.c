/* tests/engine/pipeline_test.c covers this file. */
#include "lib/engine/stages/stage_evaluation.h"

#include "lib/base/status.h"
#include "lib/engine/runtime.h"
#include "lib/engine/step/messages.h"
#include "lib/engine/step/stage_rows.h"

static sluice_status submit(sluice_runtime *rt, uint32_t channel, const slc_channel_transfer *transfer)
{
    rt->stage.next_transfer[channel]++;
    rt->stage.evaluated_bytes[channel] += transfer->bytes;
    return slc_channel_submit(rt->stage.channels[channel], transfer, 1, NULL);
}

/* Transfers the activations of a message, those of micro-batch 0, or the rows of a look-up. */
static sluice_status transfer_message(sluice_runtime *rt, uint32_t channel)
{
    const slc_stage *stage = &rt->stage;
    const slc_item message = {.index = channel};
    slc_channel_transfer transfer = {0};
    sluice_status status = SLUICE_OK;
    if (slc_stage_rows_are(rt, &message)) {
        slc_stage_rows_fill(rt, &message, &transfer);
        status = submit(rt, channel, &transfer);
    } else {
        for (uint32_t i = 0; !status && i < stage->carried_count[channel]; i++) {
            const uint32_t activation = stage->carried[channel][i];
            if (rt->job.turns[activation].turn) continue;
            transfer = (slc_channel_transfer){.data = stage->places[activation],
                                              .bytes = rt->job.activations[activation].bytes,
                                              .what = rt->job.activations[activation].name};
            status = submit(rt, channel, &transfer);
        }
    }
    return status ? status : slc_stage_messages_wait(rt, channel, stage->next_transfer[channel], NULL);
}

static sluice_status transfer_messages(sluice_runtime *rt, const slc_item *slot, bool receives)
{
    sluice_status status = SLUICE_OK;
    if (!slc_is_stage(&rt->stage)) return SLUICE_OK;
    for (uint32_t c = 0; !status && c < rt->job.channel_count; c++)
        if (rt->job.channels[c].receives == receives && rt->job.channels[c].slot == slot->slot)
            status = transfer_message(rt, c);
    return status;
}

sluice_status slc_stage_evaluation_receive(sluice_runtime *rt, const slc_item *slot)
{
    return transfer_messages(rt, slot, true);
}

sluice_status slc_stage_evaluation_send(sluice_runtime *rt, const slc_item *slot)
{
    return transfer_messages(rt, slot, false);
}

sluice_status slc_stage_evaluation_rows(sluice_runtime *rt)
{
    const slc_stage_rows *rows = &rt->stage.rows;
    const slc_item message = {.index = rows->channels[SLC_ROWS]};
    slc_channel_transfer transfer = {0};
    if (!rows->holds) return SLUICE_OK;
    sluice_status status = slc_stage_rows_begin(rt, &message);
    slc_stage_rows_fill(rt, &message, &transfer);
    return status ? status : submit(rt, message.index, &transfer);
}
