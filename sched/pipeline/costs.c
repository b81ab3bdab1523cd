/* Times of pieces from those of layers, and each stage's reductions, updates and gathers in the order in which
 * backwards make them ready. pipeline_plan_test.c covers this file. */
#include "sched/pipeline/costs.h"

#include "lib/base/status.h"
#include "lib/plan/roles.h"
#include "lib/plan/strategy_table.h"

#include <stdlib.h>

/* ---- Bytes across a cut ---- */

uint32_t slc_last_forward_reader(const slc_job *job, const slc_activation_life *life)
{
    const uint32_t last = life->last_forward_slot;
    return last >= life->first_slot && last < job->layer_count ? last : life->first_slot;
}

uint64_t slc_cut_forward_bytes(const slc_job *job, uint32_t layer)
{
    uint64_t bytes = 0;
    for (uint32_t a = 0; a < job->activation_count; a++) {
        const slc_activation_life *life = &job->activations[a];
        if (slc_slot_is_forward(job, life->first_slot) && life->first_slot <= layer &&
            slc_last_forward_reader(job, life) > layer)
            bytes += life->bytes;
    }
    return bytes;
}

uint64_t slc_cut_backward_bytes(const slc_job *job, uint32_t layer)
{
    uint64_t bytes = 0;
    for (uint32_t a = 0; a < job->activation_count; a++) {
        const slc_activation_life *life = &job->activations[a];
        if (!slc_slot_is_forward(job, life->first_slot) && slc_slot_layer(job, life->first_slot) > layer &&
            slc_slot_layer(job, life->last_slot) <= layer)
            bytes += life->bytes;
    }
    return bytes;
}

const slc_unit *slc_cut_rows(const slc_job *job)
{
    for (uint32_t u = 0; u < job->unit_count; u++)
        if (slc_looks_up(&job->units[u])) return &job->units[u];
    return NULL;
}

uint64_t slc_cut_rows_bytes(const slc_unit *rows)
{
    return rows->most_rows * rows->row_elements * sluice_dtype_bytes(SLUICE_FP32); /* gradients are fp32 */
}

/* ---- Seconds ---- */

double slc_message_s(const slc_times *times, uint64_t bytes)
{
    const double bytes_per_s = times->link.all_gather.bytes_per_s;
    return times->link.operation_s + (bytes_per_s > 0 ? (double)bytes / bytes_per_s : 0);
}

double slc_layer_forward_s(const slc_profile *profile, uint32_t layer)
{
    return profile->times.slot_s[slc_forward_slot(layer)];
}

double slc_layer_backward_s(const slc_profile *profile, bool recompute, uint32_t layer)
{
    const slc_job *job = &profile->job;
    const bool again = recompute && job->can_recompute && job->can_recompute[layer];
    return profile->times.slot_s[slc_backward_slot(job, layer)] + (again ? profile->times.recompute_s[layer] : 0);
}

slc_unit slc_unit_of_stage(const slc_unit *unit)
{
    slc_unit own = *unit;
    own.role = SLC_UNIT_WHOLE;
    own.partner = 0;
    return own;
}

static double operation_s(const slc_profile *profile, const slc_unit *unit, slc_item_kind kind)
{
    if (kind == SLC_ITEM_KINDS) return 0;
    return slc_operation_s(&profile->job, &profile->times, kind, unit, unit->elements);
}

double slc_layer_tail_s(const slc_profile *profile, slc_strategy strategy, uint32_t layer)
{
    const slc_job *job = &profile->job;
    double sum_s = 0;
    for (uint32_t u = 0; u < job->unit_count; u++) {
        const slc_unit unit = slc_unit_of_stage(&job->units[u]);
        if (unit.uses[0].layer != layer || slc_looks_up(&job->units[u]) || !unit.trainable) continue;
        const slc_unit_operations of = slc_operations_of(job, &unit, strategy);
        sum_s += operation_s(profile, &unit, of.reduce) + operation_s(profile, &unit, of.gather_value) +
                 slc_update_s(job, &profile->times, strategy, unit.elements);
    }
    return sum_s;
}

/* ---- Operations ---- */

typedef struct {
    const slc_cut_job *cut;
    slc_pipeline_costs *out;
    uint32_t *last; /* [units] the last operation of each so far; SLC_NO_OPERATION */
    uint32_t agree; /* of the stage under way */
} listing;

static void add_operation(listing *l, uint32_t unit, slc_stage_operation operation)
{
    slc_pipeline_times *times = &l->out->times;
    if (unit != SLC_NONE) l->last[unit] = times->operation_count;
    l->out->operations[times->operation_count++] = operation;
}

/* Seconds from the end of a layer's backward to that of its piece. Weight gradients that are put off end together. */
static double before_end(const listing *l, uint32_t piece, uint32_t layer)
{
    double sum_s = 0;
    for (uint32_t k = l->cut->first_layer[piece]; k < layer && !l->cut->schedule->splits; k++)
        sum_s += slc_layer_backward_s(l->cut->profile, l->cut->recompute, k);
    return sum_s;
}

static double before_layer(const listing *l, uint32_t piece, uint32_t layer)
{
    double sum_s = 0;
    for (uint32_t k = l->cut->first_layer[piece]; k < layer; k++) sum_s += slc_layer_forward_s(l->cut->profile, k);
    return sum_s;
}

/* The unit of this number if it is updated where the layer is; else one that is not trainable. */
static slc_unit unit_of_layer(const listing *l, uint32_t u, uint32_t layer)
{
    slc_unit unit = slc_unit_of_stage(&l->cut->profile->job.units[u]);
    unit.trainable &= unit.uses[0].layer == layer && !slc_looks_up(&l->cut->profile->job.units[u]);
    return unit;
}

static void list_update(listing *l, uint32_t stage, uint32_t piece, uint32_t u, const slc_unit *unit, double early_s)
{
    const slc_profile *profile = l->cut->profile;
    const slc_unit *rows = slc_cut_rows(&profile->job);
    const bool waits = slc_waits_for_agreement(&profile->job, l->cut->strategy);
    add_operation(l, u,
                  (slc_stage_operation){
                      .stage = stage,
                      .piece = piece,
                      .kind = SLC_ITEM_UPDATE,
                      .unit = u,
                      .before_end_s = early_s,
                      .thread_s = slc_update_s(&profile->job, &profile->times, l->cut->strategy, unit->elements),
                      .within_s = -1,
                      .after = waits ? l->agree : l->last[u],
                      .after_rows = rows && rows->partner == u});
}

/* Lists reductions, and updates that need not wait, in the order of the backward. */
static void list_backward(listing *l, uint32_t stage, uint32_t piece)
{
    const slc_profile *profile = l->cut->profile;
    const slc_job *job = &profile->job;
    for (uint32_t layer = slc_piece_end(l->cut, piece); layer-- > l->cut->first_layer[piece];)
        for (uint32_t u = 0; u < job->unit_count; u++) {
            const slc_unit unit = unit_of_layer(l, u, layer);
            if (!unit.trainable) continue;
            const double early_s = before_end(l, piece, layer);
            const slc_unit_operations of = slc_operations_of(job, &unit, l->cut->strategy);
            add_operation(l, u,
                          (slc_stage_operation){.stage = stage,
                                                .piece = piece,
                                                .kind = of.reduce,
                                                .unit = u,
                                                .before_end_s = early_s,
                                                .link_s = operation_s(profile, &unit, of.reduce),
                                                .within_s = -1,
                                                .after = SLC_NO_OPERATION});
            if (!slc_waits_for_agreement(job, l->cut->strategy)) list_update(l, stage, piece, u, &unit, early_s);
        }
}

/* Do forwards wait for the unit's updates? If an update follows each micro-batch, the updates of a table whose rows are
 * looked up elsewhere come too late for that: the gradients of the rows are on their way back for as long as a
 * micro-batch. */
static bool reads_updates(const listing *l, uint32_t u)
{
    const slc_unit *rows = slc_cut_rows(&l->cut->profile->job);
    return !l->cut->schedule->updates_each || !rows || rows->partner != u;
}

/* Lists the agreement of all stages, the updates that wait for it, and the gathers of values. */
static void list_end(listing *l, uint32_t stage)
{
    const slc_profile *profile = l->cut->profile;
    const slc_job *job = &profile->job;
    const bool waits = slc_waits_for_agreement(job, l->cut->strategy);
    const slc_pipeline_times *times = &l->out->times;
    if (waits) {
        const double others = (double)l->cut->shape.stages * job->world - 1;
        const bool any = times->operation_count && l->out->operations[times->operation_count - 1].stage == stage;
        l->agree = times->operation_count;
        add_operation(l, SLC_NONE,
                      (slc_stage_operation){.stage = stage,
                                            .piece = stage,
                                            .kind = SLC_ITEM_AGREE,
                                            .unit = SLC_NONE,
                                            .link_s = profile->times.link.operation_s +
                                                      2 * others * profile->times.link.all_gather.latency_s,
                                            .within_s = -1,
                                            .after = any ? times->operation_count - 1 : SLC_NO_OPERATION,
                                            .agrees = true});
    }
    for (uint32_t c = 0; c < l->cut->shape.chunks; c++) {
        const uint32_t piece = c * l->cut->shape.stages + stage;
        for (uint32_t layer = l->cut->first_layer[piece]; layer < slc_piece_end(l->cut, piece); layer++)
            for (uint32_t u = 0; u < job->unit_count; u++) {
                const slc_unit unit = unit_of_layer(l, u, layer);
                if (!unit.trainable) continue;
                const slc_unit_operations of = slc_operations_of(job, &unit, l->cut->strategy);
                if (waits) list_update(l, stage, piece, u, &unit, 0);
                if (of.gather_value != SLC_ITEM_KINDS)
                    add_operation(l, u,
                                  (slc_stage_operation){.stage = stage,
                                                        .piece = piece,
                                                        .kind = of.gather_value,
                                                        .unit = u,
                                                        .link_s = operation_s(profile, &unit, of.gather_value),
                                                        .after = l->last[u]});
                if (reads_updates(l, u)) l->out->operations[l->last[u]].within_s = before_layer(l, piece, layer);
            }
    }
}

static bool list_operations(const slc_cut_job *cut, slc_pipeline_costs *out)
{
    const size_t units = cut->profile->job.unit_count;
    listing l = {.cut = cut, .out = out, .last = calloc(units + 1, sizeof *l.last)};
    out->operations = calloc(3 * units + cut->shape.stages + 1, sizeof *out->operations);
    if (!l.last || !out->operations) {
        free(l.last);
        return false;
    }
    for (size_t u = 0; u < units; u++) l.last[u] = SLC_NO_OPERATION;
    for (uint32_t s = 0; s < cut->shape.stages; s++) {
        for (uint32_t c = cut->shape.chunks; c-- > 0;) list_backward(&l, s, c * cut->shape.stages + s);
        list_end(&l, s);
    }
    free(l.last);
    out->times.operations = out->operations;
    return true;
}

/* ---- The whole ---- */

static void fill_pieces(const slc_cut_job *cut, slc_pipeline_costs *out)
{
    const uint32_t pieces = slc_pipeline_pieces(&cut->shape);
    const slc_profile *profile = cut->profile;
    double *room = out->rooms;
    for (uint32_t p = 0; p < pieces; p++) {
        double forward_s = 0, backward_s = 0;
        for (uint32_t l = cut->first_layer[p]; l < slc_piece_end(cut, p); l++) {
            forward_s += slc_layer_forward_s(profile, l);
            backward_s += slc_layer_backward_s(profile, cut->recompute, l);
        }
        room[p] = forward_s;
        room[pieces + p] = room[2 * (size_t)pieces + p] = backward_s / 2;
        if (p + 1 == pieces) break;
        const uint32_t last = slc_piece_end(cut, p) - 1;
        room[3 * (size_t)pieces + p] = slc_message_s(&profile->times, slc_cut_forward_bytes(&profile->job, last));
        room[4 * (size_t)pieces + p] = slc_message_s(&profile->times, slc_cut_backward_bytes(&profile->job, last));
    }
    const slc_unit *rows = slc_cut_rows(&profile->job);
    out->times.forward_s = room;
    out->times.input_s = room + pieces;
    out->times.weight_s = room + 2 * (size_t)pieces;
    out->times.forward_message_s = room + 3 * (size_t)pieces;
    out->times.backward_message_s = room + 4 * (size_t)pieces;
    out->times.latency_s = profile->times.link.all_gather.latency_s;
    if (rows && cut->shape.stages > 1) out->times.rows_s = slc_message_s(&profile->times, slc_cut_rows_bytes(rows));
}

sluice_status slc_pipeline_costs_init(const slc_cut_job *cut, slc_pipeline_costs *out)
{
    *out = (slc_pipeline_costs){.rooms = calloc(5 * (size_t)slc_pipeline_pieces(&cut->shape) + 1, sizeof *out->rooms)};
    if (!out->rooms || !list_operations(cut, out))
        return slc_error(SLUICE_ERR_MEMORY, "costs of %u stages", cut->shape.stages);
    fill_pieces(cut, out);
    return SLUICE_OK;
}

void slc_pipeline_costs_fini(slc_pipeline_costs *costs)
{
    free(costs->operations);
    free(costs->rooms);
    *costs = (slc_pipeline_costs){0};
}
