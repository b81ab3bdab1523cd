/* tests/engine/pipeline_test.c covers this file. */
#include "lib/engine/step/messages.h"

#include "lib/base/clock.h"
#include "lib/base/status.h"
#include "lib/engine/measure/recording.h"
#include "lib/engine/runtime.h"
#include "lib/engine/step/claims.h"
#include "lib/engine/step/stage_rows.h"
#include "lib/engine/step/waits.h"

#include <stdlib.h>

/* Transfers of a channel that are submitted and not complete, at most: its queue holds more, so submitting never waits.
 */
enum { IN_FLIGHT = 512 };

/* ---- Making ---- */

/* Finds the messages whose end neither an operation nor another message waits for. Everybody else waits by
 * slc_channel_wait. */
static void list_unhurried(slc_pass *pass)
{
    const slc_program *program = pass->program;
    for (uint32_t i = 0; i < program->item_count; i++) pass->unhurried[i] = slc_is_message(program->items[i].kind);
    for (uint32_t i = 0; i < program->item_count; i++)
        for (uint32_t a = 0; a < program->items[i].after_count && !slc_on_compute_lane(&program->items[i]); a++)
            pass->unhurried[program->items[i].after[a].item] = false;
}

sluice_status slc_stage_messages_init(sluice_runtime *rt, slc_pass *pass)
{
    const slc_program *program = pass->program;
    uint32_t counts = 0;
    pass->messages = calloc((size_t)program->item_count + 1, sizeof *pass->messages);
    pass->first_count = calloc((size_t)program->item_count + 1, sizeof *pass->first_count);
    pass->unhurried = calloc((size_t)program->item_count + 1, sizeof *pass->unhurried);
    if (!pass->messages || !pass->first_count || !pass->unhurried) return slc_error(SLUICE_ERR_MEMORY, "messages");
    list_unhurried(pass);
    for (uint32_t i = 0; i < program->item_count; i++) {
        pass->first_count[i] = counts;
        counts += program->items[i].after_count + 1; /* one more for an agreement, or for rows */
        if (slc_is_message(program->items[i].kind)) pass->messages[pass->message_count++] = i;
    }
    for (int p = 0; p < 2; p++) {
        pass->counts[p] = calloc((size_t)counts + 1, sizeof *pass->counts[p]);
        pass->message_contexts[p] = calloc((size_t)pass->message_count + 1, sizeof *pass->message_contexts[p]);
        if (!pass->counts[p] || !pass->message_contexts[p]) return slc_error(SLUICE_ERR_MEMORY, "messages");
        for (uint32_t k = 0; k < pass->message_count; k++)
            pass->message_contexts[p][k] = (slc_message){.rt = rt, .pass = pass, .item = pass->messages[k]};
    }
    return SLUICE_OK;
}

void slc_stage_messages_fini(slc_pass *pass)
{
    for (int p = 0; p < 2; p++) {
        free(pass->counts[p]);
        free(pass->message_contexts[p]);
    }
    free(pass->messages);
    free(pass->first_count);
    free(pass->unhurried);
}

/* ---- Submitting ---- */

void slc_stage_messages_begin(sluice_runtime *rt, slc_pass *pass)
{
    for (uint32_t c = 0; c < rt->job.channel_count; c++) {
        pass->transfer_base[1][c] = pass->transfer_base[0][c];
        pass->transfer_base[0][c] = rt->stage.next_transfer[c];
    }
    pass->sent = 0;
}

static const slc_item *item_of(const slc_message *message)
{
    return &message->pass->program->items[message->item];
}

static void record(const slc_message *message, slc_moment_kind kind)
{
    const slc_moment made = {
        .plan = message->rt->current.number, .pass = message->number, .item = message->item, .kind = kind};
    slc_recording_put(message->rt->recording, SLC_MOMENT_COMMUNICATION, made);
}

static sluice_status begin_message(void *context)
{
    slc_message *message = context;
    record(message, SLC_MOMENT_BEGINS);
    sluice_status status = slc_pass_claims(message->rt, message->pass, message->item, true);
    const bool rows = slc_stage_rows_are(message->rt, item_of(message));
    return status || !rows ? status : slc_stage_rows_begin(message->rt, item_of(message));
}

static sluice_status end_message(void *context)
{
    slc_message *message = context;
    record(message, SLC_MOMENT_ENDS);
    const bool rows = slc_stage_rows_are(message->rt, item_of(message));
    sluice_status status = rows ? slc_stage_rows_end(message->rt, item_of(message)) : SLUICE_OK;
    return status ? status : slc_pass_claims(message->rt, message->pass, message->item, false);
}

/* Submits a message of rows or of their gradients. These lie in one place at their holder, so each message waits for
 * the one before it. */
static sluice_status submit_rows(sluice_runtime *rt, slc_pass *pass, uint32_t number, slc_gate_count *counts,
                                 uint32_t count)
{
    const slc_item *item = &pass->program->items[pass->messages[number]];
    const slc_stage *stage = &rt->stage;
    counts[count++] =
        (slc_gate_count){slc_channel_completed(stage->channels[item->index]), stage->next_transfer[item->index]};
    slc_channel_transfer transfer = {.label = item->micro_batch,
                                     .counts = counts,
                                     .count_count = count,
                                     .start = begin_message,
                                     .end = end_message,
                                     .context = &pass->message_contexts[pass->parity][number]};
    slc_stage_rows_fill(rt, item, &transfer);
    stage->next_transfer[item->index]++;
    return slc_channel_submit(stage->channels[item->index], &transfer, 1, NULL);
}

/* Submits a message's transfers: the first claims the message's memory, and the last one releases it. While a timeline
 * is recorded, their ends are noticed at once. */
static sluice_status submit_message(sluice_runtime *rt, slc_pass *pass, uint32_t number)
{
    const uint32_t index = pass->messages[number];
    const slc_item *item = &pass->program->items[index];
    const slc_stage *stage = &rt->stage;
    slc_gate_count *counts = pass->counts[pass->parity] + pass->first_count[index];
    const uint32_t count = slc_pass_counts(rt, pass, index, counts);
    uint32_t done = 0;
    pass->message_contexts[pass->parity][number].number = pass->number;
    if (slc_stage_rows_are(rt, item)) return submit_rows(rt, pass, number, counts, count);
    for (uint32_t i = 0; i < stage->carried_count[item->index]; i++) {
        const uint32_t activation = stage->carried[item->index][i];
        if (!slc_turn_has(&rt->job.turns[activation], item->micro_batch)) continue;
        const slc_channel_transfer transfer = {.data = stage->places[activation],
                                               .bytes = rt->job.activations[activation].bytes,
                                               .label = item->micro_batch,
                                               .counts = counts,
                                               .count_count = count,
                                               .start = done ? NULL : begin_message,
                                               .end = done + 1 == stage->transfers[item->index] ? end_message : NULL,
                                               .context = &pass->message_contexts[pass->parity][number],
                                               .what = rt->job.activations[activation].name,
                                               .end_may_wait = pass->unhurried[index] && !rt->recording};
        sluice_status status = slc_channel_submit(stage->channels[item->index], &transfer, 1, NULL);
        if (status) return status;
        stage->next_transfer[item->index]++;
        done++;
    }
    return SLUICE_OK;
}

sluice_status slc_stage_messages_submit(sluice_runtime *rt, slc_pass *pass, uint32_t until)
{
    while (pass->sent < pass->message_count) {
        const uint32_t item = pass->messages[pass->sent], channel = pass->program->items[item].index;
        const uint32_t room_from = rt->stage.next_transfer[channel] + rt->stage.transfers[channel] - IN_FLIGHT;
        const bool has_room = slc_gate_passed(slc_channel_completed(rt->stage.channels[channel]), room_from);
        if (!has_room && item >= until) return SLUICE_OK;
        if (!slc_stage_rows_known(rt, &pass->program->items[item])) return SLUICE_OK; /* no slot has begun */
        sluice_status status = has_room ? SLUICE_OK : slc_stage_messages_wait(rt, channel, room_from, NULL);
        if (!status) status = submit_message(rt, pass, pass->sent);
        if (status) return status;
        pass->sent++;
    }
    return SLUICE_OK;
}

void slc_stage_messages_let_wait(sluice_runtime *rt, slc_pass *pass, uint32_t item, slc_op *op)
{
    slc_gate_count *counts = pass->counts[pass->parity] + pass->first_count[item];
    op->counts = counts;
    op->count_count = slc_pass_counts(rt, pass, item, counts);
    if (pass->program->items[item].kind == SLC_ITEM_AGREE)
        counts[op->count_count++] = (slc_gate_count){&rt->stage.agreed, ++rt->stage.agreements};
}

/* ---- Waiting ---- */

sluice_status slc_stage_messages_wait(sluice_runtime *rt, uint32_t channel, uint32_t count, double *waited_s)
{
    if (slc_gate_passed(slc_channel_completed(rt->stage.channels[channel]), count)) return slc_runtime_healthy(rt);
    const uint64_t start_ns = slc_clock_ns();
    sluice_status status = slc_channel_wait(rt->stage.channels[channel], count);
    if (waited_s) *waited_s += slc_seconds(slc_clock_ns() - start_ns);
    return status;
}

/* Waits until each channel c has completed counts[c] transfers. */
static sluice_status wait_for_all(sluice_runtime *rt, const uint32_t *counts)
{
    sluice_status status = SLUICE_OK;
    for (uint32_t c = 0; !status && c < rt->job.channel_count; c++)
        status = slc_stage_messages_wait(rt, c, counts[c], NULL);
    return status;
}

sluice_status slc_stage_messages_settle(sluice_runtime *rt, const slc_pass *pass)
{
    return wait_for_all(rt, pass->transfer_base[0]);
}

uint64_t slc_stage_messages_bytes_sent(const sluice_runtime *rt)
{
    uint64_t bytes = 0;
    for (uint32_t c = 0; slc_is_stage(&rt->stage) && c < rt->job.channel_count; c++)
        if (!rt->job.channels[c].receives) bytes += slc_channel_bytes(rt->stage.channels[c]);
    return bytes;
}

bool slc_stage_messages_have_arrived(const sluice_runtime *rt)
{
    const slc_stage *stage = &rt->stage;
    bool arrived = true;
    for (uint32_t c = 0; stage->channels && c < rt->job.channel_count; c++)
        if (stage->channels[c]) arrived &= slc_channel_arrived(stage->channels[c], stage->next_transfer[c]);
    return arrived;
}

sluice_status slc_stage_messages_finish(sluice_runtime *rt)
{
    return wait_for_all(rt, rt->stage.next_transfer);
}
