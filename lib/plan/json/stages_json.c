/* Plans of pipelines as JSON: what was chosen for the whole job, then each stage's plan as that of a job of its own.
 * sched/pipeline/staged_plan_test.c covers this file. */
#include "lib/plan/stages.h"

#include "lib/base/file/json_file.h"
#include "lib/base/status.h"
#include "lib/plan/json/json_text.h"
#include "lib/plan/json/plan_json_parts.h"
#include "lib/plan/profile.h"
#include "lib/plan/strategy_names.h"

#include <stdlib.h>
#include <string.h>

enum { STAGES_MAX = 1 << 16, CHUNKS_MAX = 64 };

/* ---- The plan of stages ---- */

sluice_status slc_staged_plan_create(const char *schedule, uint32_t stages, uint32_t chunks, uint32_t units,
                                     slc_staged_plan **out)
{
    slc_staged_plan *staged = calloc(1, sizeof *staged);
    *out = staged;
    if (staged) {
        *staged = (slc_staged_plan){.stages = stages, .chunks = chunks, .unit_count = units};
        staged->schedule = strdup(schedule);
        staged->first_layer = calloc((size_t)stages * chunks + 1, sizeof *staged->first_layer);
        staged->strategies = calloc((size_t)units + 1, sizeof *staged->strategies);
        staged->held = calloc((size_t)units + 1, sizeof *staged->held);
        staged->plans = calloc((size_t)stages + 1, sizeof(slc_plan *));
        if (staged->schedule && staged->first_layer && staged->strategies && staged->held && staged->plans)
            return SLUICE_OK;
    }
    slc_staged_plan_destroy(staged);
    *out = NULL;
    return slc_error(SLUICE_ERR_MEMORY, "plan of %u stages", stages);
}

void slc_staged_plan_destroy(slc_staged_plan *staged)
{
    if (!staged) return;
    for (uint32_t s = 0; staged->plans && s < staged->stages; s++) slc_plan_destroy(staged->plans[s]);
    free(staged->plans);
    free(staged->held);
    free(staged->strategies);
    free(staged->first_layer);
    free(staged->schedule);
    free(staged);
}

/* ---- Writing ---- */

static void put_cuts(slc_json_text *text, const slc_job *whole, const slc_staged_plan *staged)
{
    slc_json_text_add(text, ",\n    \"cuts\": [");
    for (uint32_t p = 1; p < staged->stages * staged->chunks; p++)
        slc_json_text_string(text, p > 1 ? ", " : "", whole->layers[staged->first_layer[p]]);
    slc_json_text_add(text, "]");
}

static void put_strategies(slc_json_text *text, const slc_job *whole, const slc_staged_plan *staged)
{
    uint32_t put = 0;
    slc_json_text_add(text, ",\n    \"strategies\": {");
    for (uint32_t u = 0; u < whole->unit_count; u++) {
        slc_json_text_string(text, u ? ",\n      " : "\n      ", whole->units[u].name);
        slc_json_text_add(text, ": \"%s\"", slc_strategy_name(staged->strategies[u]));
    }
    slc_json_text_add(text, "\n    },\n    \"held\": [");
    for (uint32_t u = 0; u < whole->unit_count; u++)
        if (staged->held[u]) slc_json_text_string(text, put++ ? ", " : "", whole->units[u].name);
    slc_json_text_add(text, "], \"recompute\": %s\n  }", staged->recompute ? "true" : "false");
}

sluice_status slc_staged_plan_to_json(const slc_job *whole, const slc_job *const *jobs, const slc_staged_plan *staged,
                                      double step_s, char **out)
{
    slc_json_text text = {0};
    slc_json_text_add(&text, "{\n  \"version\": %d", SLC_PLAN_VERSION_STAGES);
    slc_json_text_real(&text, ",\n  \"forecast\": {\"step_s\": ", step_s);
    slc_json_text_add(&text, "},\n  \"pipeline\": {\n    \"stage_count\": %u, \"replicas\": %u, \"micro_batches\": %u",
                      staged->stages, whole->world, whole->micro_batches);
    slc_json_text_string(&text, ", \"schedule\": ", staged->schedule);
    slc_json_text_add(&text, ", \"chunks\": %u", staged->chunks);
    put_cuts(&text, whole, staged);
    put_strategies(&text, whole, staged);
    slc_json_text_add(&text, ",\n  \"stages\": [");
    for (uint32_t s = 0; s < staged->stages; s++) {
        slc_json_text_add(&text, s ? ",\n  {" : "\n  {");
        slc_plan_json_put(&text, jobs[s], staged->plans[s]);
        slc_json_text_add(&text, "}");
    }
    slc_json_text_add(&text, "]\n}\n");
    return slc_error_context(slc_json_text_finish(&text, out), "plan");
}

/* ---- Reading ---- */

typedef struct {
    uint32_t version;
    json_t *forecast, *pipeline, *stages;
} top_row;

static const slc_json_field top_fields[] = {
    FIELD(top_row, version, "version", SLC_JSON_COUNT, true),
    FIELD(top_row, forecast, "forecast", SLC_JSON_OBJECT, false), /* for people only */
    FIELD(top_row, pipeline, "pipeline", SLC_JSON_OBJECT, true),
    FIELD(top_row, stages, "stages", SLC_JSON_ARRAY, true),
};

typedef struct {
    const char *schedule;
    uint32_t stages, replicas, micro_batches, chunks;
    bool recompute;
    json_t *cuts, *strategies, *held;
} pipeline_row;

static const slc_json_field pipeline_fields[] = {
    FIELD(pipeline_row, stages, "stage_count", SLC_JSON_COUNT, true),
    FIELD(pipeline_row, replicas, "replicas", SLC_JSON_COUNT, true),
    FIELD(pipeline_row, micro_batches, "micro_batches", SLC_JSON_COUNT, true),
    FIELD(pipeline_row, schedule, "schedule", SLC_JSON_NAME, true),
    FIELD(pipeline_row, chunks, "chunks", SLC_JSON_COUNT, true),
    FIELD(pipeline_row, cuts, "cuts", SLC_JSON_ARRAY, true),
    FIELD(pipeline_row, strategies, "strategies", SLC_JSON_OBJECT, true),
    FIELD(pipeline_row, held, "held", SLC_JSON_ARRAY, true),
    FIELD(pipeline_row, recompute, "recompute", SLC_JSON_FLAG, true),
};

static sluice_status check_shape(const slc_json_place *at, const slc_job *whole, const pipeline_row *row)
{
    slc_json_place stages = {at, "stage_count", 0}, chunks = {at, "chunks", 0}, replicas = {at, "replicas", 0},
                   micro_batches = {at, "micro_batches", 0};
    if (row->stages > STAGES_MAX || row->stages > whole->layer_count)
        return slc_json_fault(&stages, "%u stages; the job has %u layers", row->stages, whole->layer_count);
    if (row->chunks > CHUNKS_MAX || row->chunks > whole->layer_count / row->stages)
        return slc_json_fault(&chunks, "%u chunks of %u stages; the job has %u layers", row->chunks, row->stages,
                              whole->layer_count);
    if (row->replicas != whole->world)
        return slc_json_fault(&replicas, "the plan was made for %u ranks a stage, this job has %u", row->replicas,
                              whole->world);
    if (row->micro_batches != whole->micro_batches)
        return slc_json_fault(&micro_batches, "the plan was made for %u micro-batches a replica, this job has %u",
                              row->micro_batches, whole->micro_batches);
    return SLUICE_OK;
}

/* Reads the first layers of all pieces but the first, in forward order. */
static sluice_status read_cuts(const slc_json_place *at, const slc_job *whole, const json_t *cuts,
                               slc_staged_plan *staged)
{
    slc_json_place list = {at, "cuts", 0};
    const uint32_t pieces = staged->stages * staged->chunks;
    uint32_t layer = 0;
    if (json_array_size(cuts) != pieces - 1)
        return slc_json_fault(&list, "%zu names; %u pieces of the model have %u", json_array_size(cuts), pieces,
                              pieces - 1);
    for (uint32_t p = 1; p < pieces; p++) {
        slc_json_place place = {&list, NULL, p - 1};
        const char *name;
        sluice_status status = slc_json_value(&place, json_array_get(cuts, p - 1), SLC_JSON_NAME, &name);
        if (status) return status;
        for (layer++; layer < whole->layer_count && strcmp(whole->layers[layer], name) != 0;) layer++;
        if (layer >= whole->layer_count)
            return slc_json_fault(&place, "\"%s\" is no layer, or comes too late; keep the forward order", name);
        staged->first_layer[p] = layer;
    }
    return SLUICE_OK;
}

static sluice_status read_strategies(const slc_json_place *at, const slc_job *whole, const json_t *strategies,
                                     slc_staged_plan *staged)
{
    slc_json_place list = {at, "strategies", 0};
    for (uint32_t u = 0; u < whole->unit_count; u++) {
        slc_json_place place = {&list, whole->units[u].name, 0};
        const char *name = json_string_value(json_object_get(strategies, whole->units[u].name));
        if (!name || !slc_strategy_parse(name, &staged->strategies[u]))
            return slc_json_fault(&place, "give one of " SLC_STRATEGY_NAMES(", "));
    }
    if (json_object_size(strategies) == whole->unit_count) return SLUICE_OK;
    return slc_json_fault(&list, "there are %zu of them, the job has %u units", json_object_size(strategies),
                          whole->unit_count);
}

static sluice_status read_held(const slc_json_place *at, const slc_job *whole, const json_t *held,
                               slc_staged_plan *staged)
{
    slc_json_place list = {at, "held", 0};
    uint32_t u = 0;
    for (size_t n = 0; n < json_array_size(held); n++, u++) {
        slc_json_place place = {&list, NULL, n};
        const char *name;
        sluice_status status = slc_json_value(&place, json_array_get(held, n), SLC_JSON_NAME, &name);
        if (status) return status;
        while (u < whole->unit_count && strcmp(whole->units[u].name, name) != 0) u++;
        if (u >= whole->unit_count)
            return slc_json_fault(&place, "\"%s\" is no unit, or named again or too late; keep the job's order", name);
        if (staged->strategies[u] != SLC_FSDP)
            return slc_json_fault(&place, "\"%s\" is %s; only what is gathered can be held", name,
                                  slc_strategy_name(staged->strategies[u]));
        staged->held[u] = true;
    }
    return SLUICE_OK;
}

static sluice_status read_choices(const slc_json_place *at, const slc_job *whole, const json_t *object,
                                  slc_staged_plan **out)
{
    pipeline_row row;
    sluice_status status = SLC_JSON_MEMBERS(at, object, pipeline_fields, &row);
    if (!status) status = check_shape(at, whole, &row);
    if (!status) status = slc_staged_plan_create(row.schedule, row.stages, row.chunks, whole->unit_count, out);
    if (!status) status = read_cuts(at, whole, row.cuts, *out);
    if (!status) status = read_strategies(at, whole, row.strategies, *out);
    if (!status) status = read_held(at, whole, row.held, *out);
    if (!status) (*out)->recompute = row.recompute;
    return status;
}

static sluice_status read_stages(const slc_json_place *top, const json_t *list, const slc_job *const *jobs,
                                 slc_staged_plan *staged)
{
    slc_json_place at = {top, "stages", 0};
    sluice_status status = SLUICE_OK;
    if (json_array_size(list) != staged->stages)
        return slc_json_fault(&at, "%zu plans of %u stages", json_array_size(list), staged->stages);
    for (uint32_t s = 0; !status && s < staged->stages; s++) {
        slc_json_place place = {&at, NULL, s};
        status = slc_plan_json_get(&place, jobs[s], json_array_get(list, s), &staged->plans[s]);
    }
    if (!status) status = slc_stages_validate(jobs, (const slc_plan *const *)staged->plans, staged->stages);
    return status;
}

static sluice_status read_all(const json_t *document, const slc_job *whole, slc_stage_jobs_function make, void *context,
                              slc_staged_plan **out)
{
    slc_json_place top = {0}, at = {&top, "pipeline", 0};
    top_row row;
    sluice_status status = SLC_JSON_MEMBERS(&top, document, top_fields, &row);
    if (!status) status = read_choices(&at, whole, row.pipeline, out);
    if (status) return status;
    const slc_job **jobs = calloc((size_t)(*out)->stages + 1, sizeof *jobs);
    if (!jobs) return slc_error(SLUICE_ERR_MEMORY, "jobs of %u stages", (*out)->stages);
    status = slc_error_context(make(context, *out, jobs), "$.pipeline");
    if (!status) status = read_stages(&top, row.stages, jobs, *out);
    free(jobs);
    return status;
}

sluice_status slc_staged_plan_from_json(const slc_job *whole, const char *text, size_t length,
                                        slc_stage_jobs_function make, void *context, slc_staged_plan **out)
{
    json_t *document;
    *out = NULL;
    sluice_status status = slc_json_parse(text, length, SLC_PLAN_VERSION_STAGES, SLC_PLAN_VERSION_STAGES, &document);
    if (status) return status;
    status = read_all(document, whole, make, context, out);
    json_decref(document);
    if (!status) return SLUICE_OK;
    slc_staged_plan_destroy(*out);
    *out = NULL;
    return status;
}

static uint32_t count_in(const json_t *pipeline, const char *key)
{
    const json_int_t value = json_integer_value(json_object_get(pipeline, key));
    return value > 0 && value <= INT32_MAX ? (uint32_t)value : 0;
}

static slc_plan_outline outline_of(const json_t *document)
{
    const json_t *pipeline = json_object_get(document, "pipeline");
    const bool staged = json_integer_value(json_object_get(document, "version")) == SLC_PLAN_VERSION_STAGES;
    const json_t *plan = staged ? json_array_get(json_object_get(document, "stages"), 0) : document;
    const bool compressed = json_object_get(json_object_get(plan, "job"), "compressed");
    if (!staged) return (slc_plan_outline){.compressed = compressed};
    return (slc_plan_outline){true, count_in(pipeline, "stage_count"), count_in(pipeline, "replicas"),
                              count_in(pipeline, "micro_batches"), compressed};
}

slc_plan_outline slc_plan_outline_read(const char *path)
{
    slc_plan_outline outline = {0};
    char *text;
    size_t length;
    json_t *document;
    if (slc_json_file_read(path, &text, &length)) return outline;
    if (!slc_json_parse(text, length, SLC_PLAN_VERSION, SLC_PLAN_VERSION_STAGES, &document)) {
        outline = outline_of(document);
        json_decref(document);
    }
    free(text);
    return outline;
}
