/* Computes the costs of operations, and guesses times from sizes. strategy_table_test.c covers this file. */
#include "lib/plan/times.h"

#include "lib/base/row_list.h"
#include "lib/base/status.h"
#include "lib/plan/strategy_table.h"

#include <stdlib.h>
#include <string.h>

static double line_s(const slc_job *job, const slc_link_line *line, uint64_t bytes)
{
    double n = job->world, others = n - 1;
    return line->latency_s * others + (double)bytes * others / n / line->bytes_per_s;
}

double slc_transfer_s(const slc_job *job, const slc_times *times, slc_item_kind kind, uint64_t bytes)
{
    const slc_link *link = &times->link;
    switch (kind) {
    case SLC_ITEM_REDUCE_SCATTER: return link->operation_s + line_s(job, &link->reduce_scatter, bytes);
    case SLC_ITEM_AGREE:
    case SLC_ITEM_EXCHANGE:
    case SLC_ITEM_ALL_REDUCE:
        return link->operation_s + line_s(job, &link->reduce_scatter, bytes) + line_s(job, &link->all_gather, bytes);
    case SLC_ITEM_GATHER_GRADIENT:
    case SLC_ITEM_GATHER_VALUE:
    case SLC_ITEM_GATHER_WINDOW: return link->operation_s + line_s(job, &link->all_gather, bytes);
    default: return 0;
    }
}

/* An operation on the rows of a look-up begins with lists that tell which rows it is about. */
static double lists_s(const slc_job *job, const slc_times *times, slc_item_kind kind, const slc_unit *unit)
{
    if (!unit || !slc_looks_up(unit)) return 0;
    uint64_t rows = slc_is_reduction(kind) ? slc_reduced_rows(job, unit) : unit->most_rows;
    return line_s(job, &times->link.all_gather, job->world * slc_row_list_bytes(rows));
}

double slc_operation_s(const slc_job *job, const slc_times *times, slc_item_kind kind, const slc_unit *unit,
                       uint64_t elements)
{
    double average = kind == SLC_ITEM_EXCHANGE ? times->average_s_per_element * (double)elements / job->world : 0;
    return average + lists_s(job, times, kind, unit) +
           slc_transfer_s(job, times, kind, unit ? slc_operation_bytes(job, unit, kind, elements) : 0);
}

double slc_update_s(const slc_job *job, const slc_times *times, slc_strategy strategy, uint64_t elements)
{
    if (slc_exchanges(strategy)) return times->apply_s_per_element * (double)elements;
    return times->update_s_per_element * (double)(slc_updates_whole(strategy) ? elements : elements / job->world);
}

double slc_computed_update_s(const slc_job *job, const slc_times *times, slc_strategy strategy, uint64_t elements)
{
    double element_s = times->update_compute_s_per_element;
    if (!(element_s > 0) || slc_exchanges(strategy)) return slc_update_s(job, times, strategy, elements);
    return element_s * (double)(slc_updates_whole(strategy) ? elements : elements / job->world);
}

double slc_thread_s(const slc_job *job, const slc_times *times, slc_item_kind kind, slc_strategy strategy,
                    uint64_t elements)
{
    switch (kind) {
    case SLC_ITEM_UPDATE: return slc_update_s(job, times, strategy, elements);
    case SLC_ITEM_COMPRESS: return times->compress_s_per_element * (double)elements;
    default: return 0;
    }
}

double slc_item_s(const slc_job *job, const slc_times *times, const slc_strategy *strategies, const slc_item *item)
{
    if (item->unit == SLC_NONE) return slc_operation_s(job, times, item->kind, NULL, 0);
    const slc_unit *unit = &job->units[item->unit];
    slc_strategy strategy = strategies[item->unit];
    uint64_t elements = slc_run_elements(unit, item->first_block, item->block_count);
    if (item->on_compute) return slc_computed_update_s(job, times, strategy, elements);
    if (slc_is_on_thread(item->kind)) return slc_thread_s(job, times, item->kind, strategy, elements);
    if (slc_exchanges(strategy) && item->kind == SLC_ITEM_ALL_REDUCE) return 0;
    return slc_operation_s(job, times, item->kind, unit, elements);
}

double slc_slot_s(const slc_job *job, const slc_times *times, const bool *recompute, uint32_t slot)
{
    bool again = recompute && !slc_slot_is_forward(job, slot) && recompute[slc_slot_layer(job, slot)];
    return times->slot_s[slot] + (again ? times->recompute_s[slc_slot_layer(job, slot)] : 0);
}

uint64_t slc_run_elements(const slc_unit *unit, uint64_t first_block, uint64_t block_count)
{
    uint64_t first = first_block * unit->block_elements, end = (first_block + block_count) * unit->block_elements;
    if (end > unit->elements) end = unit->elements;
    return first < end ? end - first : 0;
}

static sluice_status allocate(const slc_job *job, slc_times *out)
{
    out->slot_s = calloc(slc_job_slots(job) + 1, sizeof *out->slot_s);
    out->recompute_s = calloc((size_t)job->layer_count + 1, sizeof *out->recompute_s);
    out->weight_s = out->keeps = NULL;
    if (out->slot_s && out->recompute_s) return SLUICE_OK;
    slc_times_fini(out);
    return slc_error(SLUICE_ERR_MEMORY, "times of %u layers", job->layer_count);
}

void slc_times_fini(slc_times *times)
{
    free(times->slot_s);
    free(times->weight_s);
    free(times->recompute_s);
    free(times->keeps);
    *times = (slc_times){0};
}

/* *out becomes a copy of a number for each layer; NULL stays NULL. */
static sluice_status copy_layers(const slc_job *job, const double *numbers, double **out)
{
    *out = numbers ? malloc(((size_t)job->layer_count + 1) * sizeof **out) : NULL;
    if (numbers && !*out) return slc_error(SLUICE_ERR_MEMORY, "times of %u layers", job->layer_count);
    if (numbers) memcpy(*out, numbers, job->layer_count * sizeof **out);
    return SLUICE_OK;
}

sluice_status slc_times_copy(const slc_job *job, const slc_times *times, slc_times *out)
{
    *out = *times;
    sluice_status status = allocate(job, out);
    if (status) return status;
    memcpy(out->slot_s, times->slot_s, slc_job_slots(job) * sizeof *out->slot_s);
    memcpy(out->recompute_s, times->recompute_s, job->layer_count * sizeof *out->recompute_s);
    status = copy_layers(job, times->weight_s, &out->weight_s);
    if (!status) status = copy_layers(job, times->keeps, &out->keeps);
    if (status) slc_times_fini(out);
    return status;
}

sluice_status slc_times_set_keeps(const slc_job *job, const double *keeps, slc_times *times)
{
    bool drops = false;
    double *copy = NULL;
    for (uint32_t l = 0; keeps && l < job->layer_count; l++) drops |= keeps[l] < 1;
    sluice_status status = copy_layers(job, drops ? keeps : NULL, &copy);
    if (status) return status;
    free(times->keeps);
    times->keeps = copy;
    return SLUICE_OK;
}

double slc_times_depth(const slc_job *job, const slc_times *times)
{
    double depth = 0;
    for (uint32_t l = 0; l < job->layer_count; l++) depth += times->keeps ? times->keeps[l] : 1;
    return depth;
}

void slc_times_weigh_slots(const slc_job *job, slc_times *times)
{
    for (uint32_t s = 0; times->keeps && s < slc_job_slots(job); s++)
        times->slot_s[s] *= times->keeps[slc_slot_layer(job, s)];
    for (uint32_t l = 0; times->keeps && l < job->layer_count; l++) times->recompute_s[l] *= times->keeps[l];
}

/* A core of today handles so many bytes of parameters and activations a second in a forward; the link has 1 GB/s. */
static const double bytes_per_s = 2e9, link_bytes_per_s = 1e9, link_latency_s = 50e-6, update_s = 2e-9;
/* An exchange touches 16 bytes an element in each of its two passes and 8 in the average, at 10 GB/s. */
static const double compress_s = 1.6e-9, apply_s = 1.6e-9, average_s = 0.8e-9;

void slc_times_estimate_exchange(slc_times *times)
{
    times->compress_s_per_element = compress_s;
    times->apply_s_per_element = apply_s;
    times->average_s_per_element = average_s;
}

sluice_status slc_times_estimate(const slc_job *job, slc_times *out)
{
    *out = (slc_times){.update_s_per_element = update_s,
                       .link = {.reduce_scatter = {link_latency_s, link_bytes_per_s},
                                .all_gather = {link_latency_s, link_bytes_per_s},
                                .kappa = 0.5,
                                .sigma = 1.2,
                                .block_bytes = 4 << 20,
                                .operation_s = 5e-6}};
    slc_times_estimate_exchange(out);
    sluice_status status = allocate(job, out);
    if (status) return status;
    for (uint32_t u = 0; u < job->unit_count; u++) {
        const slc_unit *unit = &job->units[u];
        double elements = (double)unit->elements / (unit->fused ? unit->use_count : 1);
        for (uint32_t i = 0; i < unit->use_count; i++)
            out->slot_s[unit->uses[i].layer] += (double)sluice_dtype_bytes(unit->dtype) * elements / bytes_per_s;
    }
    for (uint32_t a = 0; a < job->activation_count; a++) {
        uint32_t slot = job->activations[a].first_slot;
        if (slc_slot_is_forward(job, slot)) out->slot_s[slot] += (double)job->activations[a].bytes / bytes_per_s;
    }
    for (uint32_t l = 0; l < job->layer_count; l++) {
        out->recompute_s[l] = out->slot_s[l];
        out->slot_s[slc_backward_slot(job, l)] = 2 * out->slot_s[l];
    }
    return SLUICE_OK;
}
