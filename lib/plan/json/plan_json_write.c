/* Writes a plan as text. Each buffer, item and claim is an array on its own line, so that thousands of them stay
 * small. plan_json_test.c covers this file. */
#include "lib/plan/profile.h"

#include "lib/base/file/json_file.h"
#include "lib/plan/json/json_text.h"
#include "lib/plan/json/plan_json_parts.h"

#include "lib/base/status.h"

#include <stdlib.h>

static void put_row_break(slc_json_text *text, uint32_t index)
{
    slc_json_text_add(text, index ? ",\n    " : "\n    ");
}

static void put_unit(slc_json_text *text, uint32_t unit)
{
    if (unit == SLC_NONE)
        slc_json_text_add(text, ",null");
    else
        slc_json_text_add(text, ",%u", unit);
}

/* ---- The job ---- */

/* Writes the job. Members have lines of their own, and so have elements of arrays. */
static void put_job(slc_json_text *text, const slc_job *job)
{
    json_t *document = slc_plan_job_to_json(job), *value;
    const char *key, *between = "";
    if (!document && !text->status)
        text->status = slc_error(SLUICE_ERR_FORMAT, "the job's names are not UTF-8, or no memory is left");
    slc_json_text_add(text, ",\n  \"job\": {");
    json_object_foreach (document, key, value) {
        slc_json_text_add(text, "%s\n    \"%s\": ", between, key);
        between = ",";
        if (!json_is_array(value)) {
            slc_json_text_value(text, "", json_incref(value));
            continue;
        }
        slc_json_text_add(text, "[");
        for (size_t i = 0; i < json_array_size(value); i++)
            slc_json_text_value(text, i ? ",\n      " : "\n      ", json_incref(json_array_get(value, i)));
        slc_json_text_add(text, "]");
    }
    slc_json_text_add(text, "\n  }");
    json_decref(document);
}

/* ---- The plan ---- */

static void put_distance(slc_json_text *text, const slc_plan_distance *distance)
{
    slc_json_text_add(text, ", \"distance\": ");
    if (!distance->known) {
        slc_json_text_add(text, "null");
        return;
    }
    for (int k = 0; k < SLC_DISTANCE_PARTS; k++) {
        slc_json_text_add(text, "%s\"%s_s\": ", k ? ", " : "{", slc_distance_part_name(k));
        slc_json_text_real(text, "", distance->part_s[k]);
    }
    slc_json_text_add(text, "}");
}

static void put_forecast(slc_json_text *text, const slc_plan_forecast *forecast)
{
    if (!forecast) return;
    slc_json_text_real(text, ",\n  \"forecast\": {\"step_s\": ", forecast->step_s);
    slc_json_text_real(text, ", \"exposed_s\": ", forecast->exposed_s);
    slc_json_text_real(text, ", \"compute_s\": ", forecast->compute_s);
    slc_json_text_real(text, ", \"communication_s\": ", forecast->communication_s);
    if (forecast->outside_s > 0) slc_json_text_real(text, ", \"outside_s\": ", forecast->outside_s);
    if (forecast->bound_s > 0)
        slc_json_text_real(text, ", \"bound_s\": ", forecast->bound_s);
    else
        slc_json_text_add(text, ", \"bound_s\": null");
    put_distance(text, &forecast->distance);
    if (forecast->effort_s > 0) {
        slc_json_text_real(text, ", \"planning\": {\"effort_s\": ", forecast->effort_s);
        slc_json_text_add(text, ", \"ended\": \"%s\"}", slc_planning_end_name(forecast->ended));
    }
    slc_json_text_value(text, ", \"why\": ", forecast->why ? json_string(forecast->why) : json_null());
    slc_json_text_add(text, "}");
}

static void put_choices(slc_json_text *text, const slc_job *job, const slc_plan *plan)
{
    slc_json_text_add(text, ",\n  \"strategies\": {");
    for (uint32_t u = 0; u < plan->unit_count; u++) {
        put_row_break(text, u);
        slc_json_text_string(text, "", job->units[u].name);
        slc_json_text_add(text, ": \"%s\"", slc_strategy_name(plan->strategies[u]));
    }
    slc_json_text_add(text, "\n  },\n  \"recompute\": [");
    for (uint32_t l = 0, put = 0; plan->recompute && l < plan->layer_count; l++) {
        if (!plan->recompute[l]) continue;
        slc_json_text_string(text, put++ ? ", " : "", job->layers[l]);
    }
    slc_json_text_add(text, "]");
}

static void put_buffers(slc_json_text *text, const slc_plan *plan)
{
    slc_json_text_add(text, ",\n  \"arena_bytes\": %llu, \"lower_bound_bytes\": %llu,\n  \"buffers\": [",
                      (unsigned long long)plan->arena_bytes, (unsigned long long)plan->lower_bound);
    for (uint32_t b = 0; b < plan->buffer_count; b++) {
        const slc_buffer *buffer = &plan->buffers[b];
        put_row_break(text, b);
        slc_json_text_add(text, "[\"%s\"", slc_buffer_kind_name(buffer->kind));
        put_unit(text, buffer->unit);
        slc_json_text_add(text, ",%u,%llu,%llu]", buffer->index, (unsigned long long)buffer->bytes,
                          (unsigned long long)buffer->offset);
    }
    slc_json_text_add(text, "\n  ],\n  \"resident\": [");
    for (uint32_t s = 0; s < plan->static_count; s++)
        slc_json_text_add(text, "%s%u", s ? "," : "", plan->statics[s].buffer);
    slc_json_text_add(text, "]");
}

/* Writes an item. One that it waits for is written as its number, or as -1 minus its number if it is of the previous
 * pass. */
static void put_item(slc_json_text *text, const slc_item *item)
{
    slc_json_text_add(text, "[\"%s\",%d,%u,%u", slc_item_kind_name(item->kind), item->late, item->micro_batch,
                      item->slot);
    put_unit(text, item->unit);
    slc_json_text_add(text, ",%u,%llu,%llu,[", item->index, (unsigned long long)item->first_block,
                      (unsigned long long)item->block_count);
    for (uint32_t a = 0; a < item->after_count; a++) {
        int64_t number = item->after[a].item;
        slc_json_text_add(text, "%s%lld", a ? "," : "", (long long)(item->after[a].previous ? -1 - number : number));
    }
    slc_json_text_add(text, item->on_compute ? "],1]" : "]]");
}

static void put_program(slc_json_text *text, const char *key, const slc_program *program)
{
    slc_json_text_add(text, ",\n  \"%s\": {\"items\": [", key);
    for (uint32_t i = 0; i < program->item_count; i++) {
        put_row_break(text, i);
        put_item(text, &program->items[i]);
    }
    slc_json_text_add(text, "\n  ], \"claims\": [");
    for (uint32_t c = 0; c < program->claim_count; c++) {
        const slc_claim *claim = &program->claims[c];
        put_row_break(text, c);
        slc_json_text_add(text, "[%u,%llu,%llu,%u,%u]", claim->buffer, (unsigned long long)claim->first_byte,
                          (unsigned long long)claim->end_byte, claim->from, claim->to);
    }
    slc_json_text_add(text, "\n  ]}");
}

static void put_plan(slc_json_text *text, const slc_job *job, const slc_plan *plan, const slc_plan_forecast *forecast)
{
    slc_json_text_string(text, "\n  \"schedule\": ", plan->schedule);
    put_forecast(text, forecast);
    put_job(text, job);
    put_choices(text, job, plan);
    put_buffers(text, plan);
    put_program(text, "train", &plan->train);
    put_program(text, "evaluate", &plan->evaluate);
}

void slc_plan_json_put(slc_json_text *text, const slc_job *job, const slc_plan *plan)
{
    put_plan(text, job, plan, NULL);
}

sluice_status slc_plan_to_json(const slc_job *job, const slc_plan *plan, const slc_plan_forecast *forecast, char **out)
{
    slc_json_text text = {0};
    slc_json_text_add(&text, "{\n  \"version\": %d,", SLC_PLAN_VERSION);
    put_plan(&text, job, plan, forecast);
    slc_json_text_add(&text, "\n}\n");
    return slc_error_context(slc_json_text_finish(&text, out), "plan");
}

sluice_status slc_plan_write(const slc_job *job, const slc_plan *plan, const slc_plan_forecast *forecast,
                             const char *path)
{
    char *text = NULL;
    sluice_status status = slc_plan_to_json(job, plan, forecast, &text);
    if (!status) status = slc_json_file_write(path, text);
    free(text);
    return status;
}
