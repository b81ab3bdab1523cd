/* A planned pipeline as JSON. tests/command/plan/pipeline_command_test.sh covers this file. */
#include "bench/plan/pipeline/pipelined.h"

#include "lib/plan/strategy_table.h"

static json_t *name_of(const slc_pipelined *made, uint32_t layer)
{
    return json_string(made->profile->job.layers[layer]);
}

static json_t *layers_of(const slc_pipelined *made, uint32_t stage)
{
    const uint32_t pieces = slc_pipeline_pieces(&made->request.shape);
    json_t *names = json_array();
    for (uint32_t p = stage; p < pieces; p += made->request.shape.stages) {
        const uint32_t end = p + 1 < pieces ? made->plan.first_layer[p + 1] : made->profile->job.layer_count;
        for (uint32_t l = made->plan.first_layer[p]; l < end; l++) json_array_append_new(names, name_of(made, l));
    }
    return names;
}

static json_t *stage_json(const slc_pipelined *made, uint32_t stage)
{
    const slc_pipeline_plan *plan = &made->plan;
    const slc_stage_forecast *f = &plan->forecast.stages[stage];
    const slc_pipeline_shape *shape = &made->request.shape;
    double forward_s = 0, backward_s = 0;
    for (uint32_t p = stage; p < slc_pipeline_pieces(shape); p += shape->stages) {
        forward_s += plan->costs.times.forward_s[p];
        backward_s += plan->costs.times.input_s[p] + plan->costs.times.weight_s[p];
    }
    return json_pack("{s:o, s:I, s:I, s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "layers", layers_of(made, stage),
                     "planned_bytes", (json_int_t)plan->bytes[stage], "older_values_bytes",
                     (json_int_t)plan->older_bytes[stage], "slots",
                     (json_int_t)(plan->program.task_count / plan->program.steps), "held",
                     (double)slc_pipeline_held(&plan->program, stage, SLC_HELD_UNTIL_DONE) / shape->chunks, "forward_s",
                     forward_s, "backward_s", backward_s, "compute_s", f->compute_s, "idle_s", f->idle_s, "exposed_s",
                     f->exposed_s, "messages_s", f->messages_s, "operations_s", f->operations_s);
}

static json_t *channels_json(const slc_pipelined *made)
{
    const slc_pipeline_shape *shape = &made->request.shape;
    const slc_job *job = &made->profile->job;
    json_t *channels = json_array();
    for (uint32_t p = 1; p < slc_pipeline_pieces(shape); p++) {
        const uint32_t layer = made->plan.first_layer[p] - 1;
        json_array_append_new(channels, json_pack("{s:o, s:i, s:i, s:I, s:I}", "behind", name_of(made, layer), "from",
                                                  (int)((p - 1) % shape->stages), "to", (int)(p % shape->stages),
                                                  "forward_bytes", (json_int_t)slc_cut_forward_bytes(job, layer),
                                                  "backward_bytes", (json_int_t)slc_cut_backward_bytes(job, layer)));
    }
    return channels;
}

/* Makes the strategies by name of unit; a unit under fsdp that is gathered once a step is "fsdp held". */
static json_t *strategies_json(const slc_pipelined *made)
{
    const slc_staged_plan *staged = made->plan.staged;
    json_t *strategies = json_object();
    for (uint32_t u = 0; u < staged->unit_count; u++)
        if (!slc_looks_up(&made->profile->job.units[u]))
            json_object_set_new(
                strategies, made->profile->job.units[u].name,
                json_sprintf("%s%s", slc_strategy_name(staged->strategies[u]), staged->held[u] ? " held" : ""));
    return strategies;
}

static json_t *rival_json(const slc_pipelined *made)
{
    const slc_pipeline_rival *rival = &made->rival;
    if (!rival->asked || !(rival->step_s > 0)) return json_null();
    return json_pack("{s:f, s:I, s:i}", "step_s", rival->step_s, "planned_bytes", (json_int_t)rival->bytes,
                     "micro_batches", (int)rival->micro_batches);
}

static json_t *unequal_json(const slc_pipelined *made)
{
    const slc_pipeline_plan *plan = &made->plan;
    if (!plan->unequal_count) return json_null();
    json_t *stages = json_array();
    for (uint32_t s = 0; s < plan->unequal_count; s++)
        json_array_append_new(stages, json_pack("{s:o, s:o, s:i}", "first", name_of(made, plan->unequal[s].first_layer),
                                                "last", name_of(made, plan->unequal[s].end_layer - 1), "replicas",
                                                (int)plan->unequal[s].replicas));
    return json_pack("{s:f, s:o}", "step_s", plan->unequal_s, "stages", stages);
}

json_t *slc_pipelined_json(const slc_pipelined *made)
{
    const slc_pipeline_shape *shape = &made->request.shape;
    const slc_pipeline_plan *plan = &made->plan;
    const slc_unit *rows = slc_cut_rows(&made->profile->job);
    json_t *cuts = json_array(), *stages = json_array();
    for (uint32_t p = 1; p < slc_pipeline_pieces(shape); p++)
        json_array_append_new(cuts, name_of(made, plan->first_layer[p]));
    for (uint32_t s = 0; s < shape->stages; s++) json_array_append_new(stages, stage_json(made, s));
    json_t *parts =
        json_pack("{s:f, s:f, s:f, s:f}", "slowest_stage_s", made->parts.slowest_s, "filling_s", made->parts.filling_s,
                  "messages_s", made->parts.messages_s, "operations_s", made->parts.operations_s);
    json_t *pipeline = json_pack(
        "{s:I, s:i, s:s, s:i, s:i, s:o, s:o, s:b, s:I, s:f, s:f, s:f, s:o, s:I, s:o, s:o, s:I, s:o, s:o}",
        "stage_count", (json_int_t)shape->stages, "replicas", (int)made->profile->job.world, "schedule",
        made->request.schedule->name, "chunks", (int)shape->chunks, "micro_batches", (int)shape->micro_batches, "cuts",
        cuts, "strategies", strategies_json(made), "recompute", plan->recompute, "budget_bytes",
        (json_int_t)made->request.budget_bytes, "step_s", plan->forecast.step_s + made->profile->times.outside_s,
        "idle_share", plan->forecast.idle_share, "bound_s", plan->bound_s, "parts", parts, "rows_bytes",
        (json_int_t)(rows ? slc_cut_rows_bytes(rows) : 0), "channels", channels_json(made), "stages", stages, "gathers",
        (json_int_t)plan->costs.times.gather_count * shape->micro_batches, "without_pipeline", rival_json(made),
        "unequal", unequal_json(made));
    return json_pack("{s:o}", "pipeline", pipeline);
}
