#include "bench/plan/pictures/memory_peak.h"

#include "lib/base/status.h"
#include "lib/memory/category.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static uint64_t live_at(const slc_memory_point *point)
{
    uint64_t sum = 0;
    for (int c = 0; c < SLC_MEMORY_CATEGORIES; c++) sum += point->live[c];
    return sum;
}

static size_t fullest_point(const slc_memory_series *series)
{
    size_t fullest = 0;
    for (size_t p = 1; p < series->count; p++)
        if (live_at(&series->points[p]) > live_at(&series->points[fullest])) fullest = p;
    return fullest;
}

/* Returns the slot that computes at a moment of the steady step. A slot that reaches beyond the step is also in the
 * step before or after it, at the same place. */
static uint32_t slot_at(const slc_plan *plan, const slc_item_times *items, double step_s, double at_s)
{
    for (uint32_t i = 0; i < plan->train.item_count; i++) {
        if (plan->train.items[i].kind != SLC_ITEM_SLOT) continue;
        double shifted_s = at_s - floor((at_s - items[i].start_s) / step_s) * step_s;
        if (shifted_s >= items[i].start_s && shifted_s < items[i].end_s) return plan->train.items[i].slot;
    }
    return SLC_NONE;
}

/* ---- Columns ---- */

static bool is_shared(const slc_unit *unit)
{
    return unit->use_count > 1;
}

/* Lists the columns, and where each layer's and each unit's is: place [layers + units]. */
static void list_columns(const slc_job *job, slc_memory_peak *peak, uint32_t *place)
{
    for (uint32_t l = 0; l < job->layer_count; l++) {
        place[l] = peak->count;
        peak->columns[peak->count++].name = job->layers[l];
        for (uint32_t u = 0; u < job->unit_count; u++) {
            if (job->units[u].uses[0].layer != l) continue;
            place[job->layer_count + u] = is_shared(&job->units[u]) ? peak->count : place[l];
            if (is_shared(&job->units[u])) peak->columns[peak->count++].name = job->units[u].name;
        }
    }
    peak->columns[peak->count++].name = "no layer";
    peak->columns[peak->count++].name = "not in use";
}

static uint32_t column_of(const slc_job *job, const slc_memory_peak *peak, const uint32_t *place,
                          const slc_buffer *buffer)
{
    if (buffer->kind == SLC_BUFFER_ACTIVATION)
        return place[slc_slot_layer(job, job->activations[buffer->index].first_slot)];
    if (buffer->kind == SLC_BUFFER_WORKSPACE) return place[slc_slot_layer(job, job->workspaces[buffer->index].slot)];
    return buffer->unit == SLC_NONE ? peak->count - 2 : place[job->layer_count + buffer->unit];
}

static void charge(const slc_job *job, const slc_plan *plan, const slc_claim *claim, uint32_t copies,
                   const uint32_t *place, slc_memory_peak *peak)
{
    const slc_buffer *buffer = &plan->buffers[claim->buffer];
    slc_memory_column *column = &peak->columns[column_of(job, peak, place, buffer)];
    const uint64_t bytes = copies * (claim->end_byte - claim->first_byte);
    column->bytes[slc_memory_category_of(buffer->kind)] += bytes;
    peak->live_bytes += bytes;
}

sluice_status slc_memory_peak_find(const slc_job *job, const slc_plan *plan, const slc_item_times *items,
                                   const slc_memory_series *series, double step_s, slc_memory_peak *out)
{
    const size_t owners = (size_t)job->layer_count + job->unit_count, point = fullest_point(series);
    const double end_s = point + 1 < series->count ? series->points[point + 1].at_s : step_s;
    const double middle_s = (series->points[point].at_s + end_s) / 2;
    uint32_t *place = calloc(owners + 1, sizeof *place),
             *copies = calloc((size_t)plan->train.claim_count + 1, sizeof *copies);
    *out = (slc_memory_peak){.at_s = series->points[point].at_s,
                             .slot = slot_at(plan, items, step_s, middle_s),
                             .columns = calloc(owners + 2, sizeof *out->columns),
                             .planned_bytes = plan->arena_bytes + job->reserved_bytes};
    sluice_status status = SLUICE_OK;
    if (!place || !copies || !out->columns) {
        status = slc_error(SLUICE_ERR_MEMORY, "memory by layer of %u layers", job->layer_count);
        slc_memory_peak_fini(out);
        goto free_all;
    }
    list_columns(job, out, place);
    slc_simulate_held(plan, items, step_s, middle_s, copies);
    for (uint32_t s = 0; s < plan->static_count; s++) charge(job, plan, &plan->statics[s], 1, place, out);
    for (uint32_t c = 0; c < plan->train.claim_count; c++)
        if (copies[c]) charge(job, plan, &plan->train.claims[c], copies[c], place, out);
    out->columns[out->count - 2].bytes[SLC_MEMORY_RESERVED] = job->reserved_bytes;
    out->live_bytes += job->reserved_bytes;
    out->columns[out->count - 1].unused = out->planned_bytes - out->live_bytes;

free_all:
    free(copies);
    free(place);
    return status;
}

void slc_memory_peak_fini(slc_memory_peak *peak)
{
    free(peak->columns);
    *peak = (slc_memory_peak){0};
}

void slc_memory_peak_name(const slc_job *job, const slc_memory_peak *peak, char *text, size_t size)
{
    if (peak->slot == SLC_NONE)
        snprintf(text, size, "while compute waits");
    else
        snprintf(text, size, "in the %s of %.60s", slc_slot_is_forward(job, peak->slot) ? "forward" : "backward",
                 job->layers[slc_slot_layer(job, peak->slot)]);
}
