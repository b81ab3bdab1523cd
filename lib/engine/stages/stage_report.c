/* tests/engine/pipeline_test.c covers this file. */
#include "lib/engine/stages/stage_report.h"

#include "lib/base/sized.h"
#include "lib/base/status.h"
#include "lib/engine/runtime.h"

#include <sluice/plan.h>

_Static_assert((int)SLUICE_STAGE_CHANNELS_MAX == SLC_STAGE_CHANNELS_MAX, "a report has all channels");

void slc_stage_report_note(sluice_runtime *rt, const slc_step_state *step)
{
    slc_stage *stage = &rt->stage;
    if (!slc_is_stage(stage)) return;
    stage->last.times = step->stage;
    stage->last.exposed_s = step->exposed_s;
    for (uint32_t c = 0; c < rt->job.channel_count; c++) {
        stage->last.bytes_before[c] = stage->last.bytes[c];
        stage->last.bytes[c] = slc_channel_bytes(stage->channels[c]) - stage->evaluated_bytes[c];
    }
}

/* The channels of cuts come first in the numbers, those of rows after them. An even number carries activations or rows,
 * the odd number after it their gradients. */
static sluice_stage_channel describe(const slc_stage *stage, uint32_t channel, const slc_stage_channel *end)
{
    static const char *const names[2][2] = {{"activations", "gradients"}, {"rows", "gradients of rows"}};
    const bool rows = end->number >= 2 * (stage->stages * stage->now->cut.chunks - 1);
    return (sluice_stage_channel){.what = names[rows][end->number % 2],
                                  .piece = rows ? 0 : end->number / 2 + 1,
                                  .stage = end->stage,
                                  .receives = end->receives,
                                  .step_bytes = stage->last.bytes[channel] - stage->last.bytes_before[channel],
                                  .waited_s = stage->last.times.waited_s[channel]};
}

sluice_status sluice_runtime_piece(const sluice_runtime *rt, uint32_t layer, const char **name, uint32_t *piece)
{
    if (!rt || !name || !piece)
        return slc_error(SLUICE_ERR_ARGUMENT, "runtime_piece: no runtime, or no place for the name or the piece");
    if (!rt->committed) return slc_error(SLUICE_ERR_ORDER, "runtime_piece: before commit");
    const slc_stage *stage = &rt->stage;
    if (!slc_is_stage(stage))
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "runtime_piece: layer %u: the runtime is no pipeline, so it has no pieces; "
                         "ask where sluice_runtime_stage tells stages",
                         layer);
    if (layer >= stage->whole.layer_count)
        return slc_error(SLUICE_ERR_ARGUMENT, "runtime_piece: layer %u; the pipeline has %u, from 0", layer,
                         stage->whole.layer_count);
    *name = stage->whole.layers[layer];
    *piece = slc_stage_piece_of(stage, layer);
    return SLUICE_OK;
}

static void add_prediction(const slc_stage *stage, sluice_stage_report *report)
{
    const slc_stage_step *own = &stage->now->cut.steps[stage->number];
    report->predicted_step_s = stage->now->cut.step_s;
    report->predicted_slots_s = own->compute_s;
    report->predicted_idle_s = own->idle_s;
    report->predicted_exposed_s = own->exposed_s;
}

sluice_status sluice_runtime_stage(const sluice_runtime *rt, sluice_stage_report *report)
{
    sluice_stage_report made = {0};
    if (!rt || !report) return slc_error(SLUICE_ERR_ARGUMENT, "runtime_stage: no runtime or no report given");
    if (!rt->committed) return slc_error(SLUICE_ERR_ORDER, "runtime_stage: before commit");
    sluice_status status = slc_sized_check("sluice_stage_report", NULL, report, sizeof *report);
    if (status) return status;
    const slc_stage *stage = &rt->stage;
    if (slc_is_stage(stage)) {
        made.stages = stage->stages;
        made.replicas = (uint32_t)rt->replicas;
        made.stage = stage->number;
        made.chunks = stage->now->cut.chunks;
        made.schedule = stage->schedule;
        made.slots_s = stage->last.times.slots_s;
        made.idle_s = slc_stage_idle_s(&stage->last.times);
        made.exposed_s = stage->last.exposed_s;
        made.end_s = stage->last.times.end_s;
        made.layer_count = stage->whole.layer_count;
        made.channel_count = rt->job.channel_count;
        for (uint32_t c = 0; c < made.channel_count; c++) made.channels[c] = describe(stage, c, &rt->job.channels[c]);
        if (stage->now->cut.timed) add_prediction(stage, &made);
    }
    slc_sized_write(&made, sizeof made, report);
    return SLUICE_OK;
}
