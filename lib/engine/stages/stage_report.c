/* tests/engine/pipeline_test.c covers this file. */
#include "lib/engine/stages/stage_report.h"

#include "lib/base/sized.h"
#include "lib/base/status.h"
#include "lib/engine/measure/measure.h"
#include "lib/engine/runtime.h"

#include <sluice/plan.h>

_Static_assert((int)SLUICE_STAGE_CHANNELS_MAX == SLC_STAGE_CHANNELS_MAX, "a report has all channels");

void slc_stage_report_note(sluice_runtime *rt, const slc_step_state *step)
{
    slc_stage *stage = &rt->stage;
    if (!slc_is_stage(stage)) return;
    stage->last.times = step->stage;
    stage->last.times.slots_s = rt->measure->step_compute_s;
    stage->last.exposed_s = step->exposed_s;
    for (uint32_t c = 0; c < rt->job.channel_count; c++) {
        stage->last.bytes_before[c] = stage->last.bytes[c];
        stage->last.bytes[c] = slc_channel_bytes(stage->channels[c]);
    }
}

/* Names what a channel carries: activations and gradients of a cut by turns, unless they are rows of a table. */
static const char *describe(const slc_stage *stage, uint32_t channel, const slc_stage_channel *end)
{
    if (stage->rows.param && channel == stage->rows.channels[SLC_ROWS]) return "rows";
    if (stage->rows.param && channel == stage->rows.channels[SLC_ROW_GRADIENTS]) return "gradients of rows";
    return end->number % 2 ? "gradients" : "activations";
}

static void fill_channels(const sluice_runtime *rt, sluice_stage_report *out)
{
    const slc_stage *stage = &rt->stage;
    out->channel_count = rt->job.channel_count;
    for (uint32_t c = 0; c < out->channel_count; c++) {
        const slc_stage_channel *end = &rt->job.channels[c];
        out->channels[c] = (sluice_stage_channel){.what = describe(stage, c, end),
                                                  .piece = end->slot == SLC_NONE ? 0 : end->number / 2 + 1,
                                                  .stage = end->stage,
                                                  .receives = end->receives,
                                                  .step_bytes = stage->last.bytes[c] - stage->last.bytes_before[c],
                                                  .waited_s = stage->last.times.waited_s[c]};
    }
}

sluice_status sluice_runtime_piece(const sluice_runtime *rt, uint32_t layer, const char **name, uint32_t *piece)
{
    if (!rt || !name || !piece)
        return slc_error(SLUICE_ERR_ARGUMENT, "runtime_piece: no runtime, or no place for the name or the piece");
    if (!rt->committed) return slc_error(SLUICE_ERR_ORDER, "runtime_piece: before commit");
    const slc_stage *stage = &rt->stage;
    if (!slc_is_stage(stage) || layer >= stage->whole.layer_count)
        return slc_error(SLUICE_ERR_ARGUMENT, "runtime_piece: layer %u of %u that a pipeline has", layer,
                         stage->whole.layer_count);
    *name = stage->whole.layers[layer];
    *piece = slc_stage_piece_of(stage, layer);
    return SLUICE_OK;
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
        made.chunks = stage->cut.chunks;
        made.schedule = stage->schedule;
        made.slots_s = stage->last.times.slots_s;
        made.idle_s = slc_stage_idle_s(&stage->last.times);
        made.exposed_s = stage->last.exposed_s;
        made.end_s = stage->last.times.end_s;
        made.layer_count = stage->whole.layer_count;
        fill_channels(rt, &made);
    }
    slc_sized_write(&made, sizeof made, report);
    return SLUICE_OK;
}
