/* The memory rows when nothing overlaps. ilp/slot_model_test.c covers this file. */
#include "ilp/parts/serial_memory.h"

#include "lib/base/status.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

sluice_status slc_slot_choice_init(slc_slot_choice *choice, const slc_job *job)
{
    choice->strategies = calloc((size_t)job->unit_count + 1, sizeof *choice->strategies);
    choice->recompute = calloc((size_t)job->layer_count + 1, sizeof *choice->recompute);
    if (choice->strategies && choice->recompute) return SLUICE_OK;
    slc_slot_choice_fini(choice);
    return slc_error(SLUICE_ERR_MEMORY, "slot model: no memory for choices");
}

void slc_slot_choice_copy(slc_slot_choice *to, const slc_slot_choice *from, const slc_job *job)
{
    memcpy(to->strategies, from->strategies, job->unit_count * sizeof *to->strategies);
    memcpy(to->recompute, from->recompute, job->layer_count * sizeof *to->recompute);
}

void slc_slot_choice_fini(slc_slot_choice *choice)
{
    free(choice->recompute);
    free(choice->strategies);
    *choice = (slc_slot_choice){0};
}

static void add_span(const slc_slot_model_parts *parts, double *rows, const slc_lifetime *span)
{
    for (int64_t h = span->from; h <= span->to; h++) rows[h % parts->half_rows] += span->bytes;
}

static void fill_unit(const slc_serial_memory *memory, uint32_t u, slc_strategy strategy, slc_lifetime *spans)
{
    const slc_slot_model_parts *parts = memory->parts;
    double *rows = memory->unit[u * SLC_STRATEGIES + (uint32_t)strategy];
    uint32_t count = slc_strategy_spans(parts, u, strategy, spans);
    for (uint32_t i = 0; i < count; i++) add_span(parts, rows, &spans[i]);
    rows[parts->half_rows] = spans[0].bytes;
    for (uint32_t i = 0; i < parts->evaluated_count; i++)
        rows[parts->half_rows + 1 + i] = slc_evaluation_bytes(parts, u, strategy, parts->evaluated[i]);
    for (uint32_t i = 0; i < parts->family_count; i++) {
        const slc_flow_family *s = &parts->families[i];
        if (s->unit != u || !slc_has(s->strategies, strategy)) continue;
        count = slc_flow_family_spans(parts, s, slc_flow_family_serial_position(parts, s), spans);
        for (uint32_t k = 0; k < count; k++) add_span(parts, rows, &spans[k]);
    }
}

static void fill_layer(const slc_serial_memory *memory, uint32_t layer)
{
    const slc_job *job = memory->parts->job;
    slc_lifetime span;
    for (uint32_t a = 0; a < job->activation_count; a++)
        for (uint32_t m = 0; m < memory->parts->micro_batches && slc_activation_layer(job, a) == layer; m++)
            if (slc_recompute_span(memory->parts, a, m, &span)) add_span(memory->parts, memory->layer[layer], &span);
}

static sluice_status allocate(slc_serial_memory *memory)
{
    const slc_slot_model_parts *parts = memory->parts;
    size_t units = parts->job->unit_count, layers = parts->job->layer_count, used = 1;
    memory->unit = calloc(units * SLC_STRATEGIES + 1, sizeof *memory->unit);
    memory->layer = calloc(layers + 1, sizeof *memory->layer);
    for (uint32_t u = 0; u < units; u++) used += (size_t)__builtin_popcount(parts->options[u]);
    for (uint32_t l = 0; l < layers; l++) used += slc_recompute_of(parts, l) == 2;
    memory->cells = calloc(used * memory->rows, sizeof *memory->cells);
    if (!memory->unit || !memory->layer || !memory->cells) {
        slc_serial_memory_fini(memory);
        return slc_error(SLUICE_ERR_MEMORY, "slot model: no memory for %zu times %u rows", used, memory->rows);
    }
    memory->fixed = memory->cells;
    double *next = memory->cells + memory->rows;
    for (uint32_t i = 0; i < units * SLC_STRATEGIES; i++) {
        if (!slc_has(parts->options[i / SLC_STRATEGIES], (slc_strategy)(i % SLC_STRATEGIES))) continue;
        memory->unit[i] = next;
        next += memory->rows;
    }
    for (uint32_t l = 0; l < layers; l++) {
        if (slc_recompute_of(parts, l) != 2) continue;
        memory->layer[l] = next;
        next += memory->rows;
    }
    return SLUICE_OK;
}

sluice_status slc_serial_memory_init(slc_serial_memory *memory, const slc_slot_model_parts *parts)
{
    *memory = (slc_serial_memory){.parts = parts, .rows = parts->half_rows + 1 + parts->evaluated_count};
    slc_lifetime *spans = calloc(slc_strategy_spans_max(parts) + SLC_SPANS_MAX, sizeof *spans);
    sluice_status status = spans ? allocate(memory) : slc_error(SLUICE_ERR_MEMORY, "slot model: no memory for spans");
    if (status) goto out;
    for (uint32_t h = 0; h < parts->half_rows; h++) memory->fixed[h] = (double)parts->fixed_bytes[h];
    memory->fixed[parts->half_rows] = (double)parts->reading_bytes;
    for (uint32_t i = 0; i < parts->evaluated_count; i++)
        memory->fixed[parts->half_rows + 1 + i] = (double)parts->evaluated_bytes[i];
    for (uint32_t i = 0; i < parts->job->unit_count * SLC_STRATEGIES; i++)
        if (memory->unit[i]) fill_unit(memory, i / SLC_STRATEGIES, (slc_strategy)(i % SLC_STRATEGIES), spans);
    for (uint32_t l = 0; l < parts->job->layer_count; l++)
        if (memory->layer[l]) fill_layer(memory, l);

out:
    free(spans);
    return status;
}

void slc_serial_memory_fini(slc_serial_memory *memory)
{
    free(memory->cells);
    free(memory->layer);
    free(memory->unit);
    *memory = (slc_serial_memory){0};
}

double slc_serial_peak(const slc_serial_memory *memory, const slc_slot_choice *choice, double *rows)
{
    const slc_job *job = memory->parts->job;
    double peak = 0;
    memcpy(rows, memory->fixed, memory->rows * sizeof *rows);
    for (uint32_t u = 0; u < job->unit_count; u++) {
        const double *of = memory->unit[u * SLC_STRATEGIES + (uint32_t)choice->strategies[u]];
        for (uint32_t h = 0; h < memory->rows; h++) rows[h] += of[h];
    }
    for (uint32_t l = 0; l < job->layer_count; l++)
        for (uint32_t h = 0; memory->layer[l] && choice->recompute[l] && h < memory->rows; h++)
            rows[h] -= memory->layer[l][h];
    for (uint32_t h = 0; h < memory->rows; h++)
        if (rows[h] > peak) peak = rows[h];
    return peak;
}

double slc_serial_least(const slc_serial_memory *memory, double *rows)
{
    const slc_job *job = memory->parts->job;
    double least = 0;
    memcpy(rows, memory->fixed, memory->rows * sizeof *rows);
    for (uint32_t u = 0; u < job->unit_count; u++)
        for (uint32_t h = 0; h < memory->rows; h++) {
            double smallest = INFINITY;
            for (int k = 0; k < SLC_STRATEGIES; k++) {
                const double *of = memory->unit[u * SLC_STRATEGIES + (uint32_t)k];
                if (of) smallest = fmin(smallest, of[h]);
            }
            rows[h] += smallest;
        }
    for (uint32_t l = 0; l < job->layer_count; l++)
        for (uint32_t h = 0; memory->layer[l] && h < memory->rows; h++) rows[h] -= memory->layer[l][h];
    for (uint32_t h = 0; h < memory->rows; h++) least = fmax(least, rows[h]);
    return least;
}

double slc_serial_seconds(const slc_slot_model_parts *parts, const slc_slot_choice *choice)
{
    const slc_job *job = parts->job;
    double seconds = 0;
    for (uint32_t l = 0; l < job->layer_count; l++)
        if (choice->recompute[l]) seconds += parts->times->recompute_s[l] * job->micro_batches;
    for (uint32_t i = 0; i < parts->family_count; i++) {
        const slc_flow_family *s = &parts->families[i];
        bool middle = slc_is_template(parts) && s->micro_batch == 1;
        if (slc_has(s->strategies, choice->strategies[s->unit]))
            seconds += slc_flow_family_alone_s(s) * (middle ? parts->middle : 1);
    }
    return seconds;
}
