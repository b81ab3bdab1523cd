/* Times of pieces from those of layers, and each stage's reductions, updates and gathers in the order in which
 * backwards make them ready. pipeline_plan_test.c covers this file. */
#include "sched/pipeline/costs.h"

#include "lib/base/status.h"
#include "lib/plan/roles.h"
#include "lib/plan/strategy_table.h"

#include <stdlib.h>

/* ---- Bytes across a cut ---- */

uint32_t slc_last_reader_of(const slc_job *job, const slc_activation_life *life)
{
    const uint32_t evaluated = life->last_forward_slot;
    uint32_t last = evaluated > life->first_slot && evaluated < job->layer_count ? evaluated : life->first_slot;
    const slc_activation_readers *readers = slc_readers_of(job, life);
    if (readers && readers->count && readers->at[readers->count - 1].layer > last)
        last = readers->at[readers->count - 1].layer;
    return last;
}

uint64_t slc_cut_forward_bytes(const slc_job *job, uint32_t layer)
{
    uint64_t bytes = 0;
    for (uint32_t a = 0; a < job->activation_count; a++) {
        const slc_activation_life *life = &job->activations[a];
        if (slc_slot_is_forward(job, life->first_slot) && life->first_slot <= layer &&
            slc_last_reader_of(job, life) > layer)
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

static const slc_link_line *channel_of(const slc_times *times)
{
    return times->link.channel.bytes_per_s > 0 ? &times->link.channel : &times->link.all_gather;
}

double slc_message_s(const slc_times *times, uint64_t bytes)
{
    const double bytes_per_s = channel_of(times)->bytes_per_s;
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

static bool knows_weight_time(const slc_profile *profile, uint32_t layer)
{
    return profile->times.weight_s && profile->times.weight_s[layer] >= 0;
}

double slc_layer_weight_s(const slc_profile *profile, uint32_t layer)
{
    if (knows_weight_time(profile, layer)) return profile->times.weight_s[layer];
    return profile->times.slot_s[slc_backward_slot(&profile->job, layer)] / 2;
}

bool slc_knows_weight_times(const slc_profile *profile)
{
    bool knows = true;
    for (uint32_t l = 0; l < profile->job.layer_count; l++) knows &= knows_weight_time(profile, l);
    return knows;
}

slc_unit slc_unit_of_stage(const slc_unit *unit)
{
    slc_unit own = *unit;
    own.role = SLC_UNIT_WHOLE;
    own.partner = 0;
    return own;
}

slc_strategy slc_cut_strategy(const slc_cut_job *cut, uint32_t unit)
{
    const slc_unit *whole = &cut->profile->job.units[unit], own = slc_unit_of_stage(whole);
    const slc_strategy asked = cut->strategies[unit];
    const bool table = whole->role == SLC_UNIT_SPLIT;
    if (table && (slc_gathers_windows(asked) || slc_exchanges(asked))) return SLC_SDP;
    if (table && slc_updates_whole(asked) && cut->profile->job.world > 1) return SLC_OSS;
    return slc_unit_strategy(&cut->profile->job, &own, asked);
}

static double operation_s(const slc_profile *profile, const slc_unit *unit, slc_item_kind kind)
{
    if (kind == SLC_ITEM_KINDS) return 0;
    return slc_operation_s(&profile->job, &profile->times, kind, unit, unit->elements);
}

/* The looked-up rows of a table, if replicas reduce their gradients too, after those of the table itself; else NULL. */
static const slc_unit *rows_to_reduce(const slc_cut_job *cut, uint32_t table)
{
    const slc_unit *rows = slc_cut_rows(&cut->profile->job);
    const bool reduces = rows && rows->partner == table && rows->trainable;
    return reduces && cut->shape.stages > 1 && cut->profile->job.world > 1 ? rows : NULL;
}

static double reduce_rows_s(const slc_cut_job *cut, uint32_t table, slc_item_kind reduce)
{
    const slc_unit *rows = rows_to_reduce(cut, table);
    return rows ? operation_s(cut->profile, rows, reduce) : 0;
}

double slc_layer_tail_s(const slc_cut_job *cut, uint32_t layer)
{
    const slc_job *job = &cut->profile->job;
    const slc_times *times = &cut->profile->times;
    double sum_s = 0;
    for (uint32_t u = 0; u < job->unit_count; u++) {
        const slc_unit unit = slc_unit_of_stage(&job->units[u]);
        if (unit.uses[0].layer != layer || slc_looks_up(&job->units[u]) || !unit.trainable) continue;
        const slc_strategy strategy = slc_cut_strategy(cut, u);
        const slc_unit_operations of = slc_operations_of(job, &unit, strategy);
        sum_s += slc_thread_s(job, times, SLC_ITEM_UPDATE, strategy, unit.elements) +
                 operation_s(cut->profile, &unit, of.gather_value);
        sum_s += slc_exchanges(strategy)
                     ? slc_thread_s(job, times, SLC_ITEM_COMPRESS, strategy, unit.elements) +
                           operation_s(cut->profile, &unit, of.exchange)
                     : operation_s(cut->profile, &unit, of.reduce) + reduce_rows_s(cut, u, of.reduce);
        if (slc_cut_holds(cut, u)) sum_s += operation_s(cut->profile, &unit, SLC_ITEM_GATHER_WINDOW);
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

/* Returns unit `u` as a stage has it, trainable only if it is updated where the layer is. */
static slc_unit unit_of_layer(const listing *l, uint32_t u, uint32_t layer)
{
    slc_unit unit = slc_unit_of_stage(&l->cut->profile->job.units[u]);
    unit.trainable &= unit.uses[0].layer == layer && !slc_looks_up(&l->cut->profile->job.units[u]);
    return unit;
}

/* Lists an operation on a unit, on the thread or on the egress. `ready_s` is before_end_s, `after` the operation before
 * it.
 */
static void list_unit(listing *l, uint32_t piece, uint32_t u, const slc_unit *unit, slc_item_kind kind, double ready_s,
                      uint32_t after)
{
    const slc_profile *profile = l->cut->profile;
    const slc_unit *rows = slc_cut_rows(&profile->job);
    const bool thread = slc_is_on_thread(kind), updates = kind == SLC_ITEM_UPDATE;
    const slc_strategy strategy = slc_cut_strategy(l->cut, u);
    if (kind == SLC_ITEM_KINDS) return;
    add_operation(
        l, u,
        (slc_stage_operation){
            .stage = piece % l->cut->shape.stages,
            .piece = piece,
            .kind = kind,
            .unit = u,
            .before_end_s = ready_s,
            .link_s = thread ? 0 : operation_s(profile, unit, kind),
            .thread_s = thread ? slc_thread_s(&profile->job, &profile->times, kind, strategy, unit->elements) : 0,
            .within_s = -1,
            .after = after,
            .after_rows = updates && rows && rows->partner == u});
}

/* Lists the update, and before it the compression and the exchange of a onebit unit. The first of these operations
 * comes after the agreement if the unit waits for it, else after the unit's last operation so far. */
static void list_update(listing *l, uint32_t piece, uint32_t u, const slc_unit *unit, double ready_s)
{
    const slc_job *job = &l->cut->profile->job;
    const slc_strategy strategy = slc_cut_strategy(l->cut, u);
    const slc_unit_operations of = slc_operations_of(job, unit, strategy);
    uint32_t after = slc_waits_for_agreement(job, strategy) ? l->agree : l->last[u];
    const slc_item_kind kinds[] = {of.compress, of.exchange, SLC_ITEM_UPDATE};
    for (int k = 0; k < 3; k++) {
        list_unit(l, piece, u, unit, kinds[k], ready_s, after);
        if (kinds[k] != SLC_ITEM_KINDS) after = l->last[u];
    }
}

/* Lists the second reduction of a table, that of the gradients of its rows, which must have come back. */
static void list_rows(listing *l, uint32_t piece, uint32_t u, slc_item_kind reduce)
{
    const slc_unit *rows = rows_to_reduce(l->cut, u);
    if (!rows) return;
    add_operation(l, u,
                  (slc_stage_operation){.stage = piece % l->cut->shape.stages,
                                        .piece = piece,
                                        .kind = reduce,
                                        .unit = (uint32_t)(rows - l->cut->profile->job.units),
                                        .link_s = operation_s(l->cut->profile, rows, reduce),
                                        .within_s = -1,
                                        .after = l->last[u],
                                        .after_rows = true});
}

/* Lists the reductions of a step's micro-batches before the last, if each of them is reduced. */
static void list_earlier(listing *l, uint32_t piece, uint32_t u, const slc_unit *unit, slc_item_kind reduce,
                         double ready_s)
{
    const slc_job *job = &l->cut->profile->job;
    const bool each = job->each && !l->cut->schedule->updates_each && reduce != SLC_ITEM_KINDS;
    for (uint32_t m = each ? job->micro_batches - 1 : 0; m > 0; m--) {
        list_unit(l, piece, u, unit, reduce, ready_s, SLC_NO_OPERATION);
        l->out->operations[l->last[u]].earlier = m;
    }
}

/* Lists reductions, and updates that need not wait, in the order of the backward. */
static void list_backward(listing *l, uint32_t piece)
{
    const slc_job *job = &l->cut->profile->job;
    for (uint32_t layer = slc_piece_end(l->cut, piece); layer-- > l->cut->first_layer[piece];)
        for (uint32_t u = 0; u < job->unit_count; u++) {
            const slc_unit unit = unit_of_layer(l, u, layer);
            if (!unit.trainable) continue;
            const double early_s = before_end(l, piece, layer);
            const slc_strategy strategy = slc_cut_strategy(l->cut, u);
            const slc_unit_operations of = slc_operations_of(job, &unit, strategy);
            if (!slc_exchanges(strategy)) {
                list_earlier(l, piece, u, &unit, of.reduce, early_s);
                list_unit(l, piece, u, &unit, of.reduce, early_s, SLC_NO_OPERATION);
                list_rows(l, piece, u, of.reduce);
            }
            if (!slc_waits_for_agreement(job, strategy)) list_update(l, piece, u, &unit, early_s);
        }
}

/* Returns true if forwards wait for the unit's updates. If an update follows each micro-batch, the updates of a table
 * whose rows are looked up elsewhere come too late for that: the gradients of the rows are on their way back for as
 * long as a micro-batch. */
static bool reads_updates(const listing *l, uint32_t u)
{
    const slc_unit *rows = slc_cut_rows(&l->cut->profile->job);
    return !l->cut->schedule->updates_each || !rows || rows->partner != u;
}

static void list_agreement(listing *l, uint32_t stage)
{
    const slc_profile *profile = l->cut->profile;
    const slc_pipeline_times *times = &l->out->times;
    const double others = (double)l->cut->shape.stages * profile->job.world - 1;
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

/* Lists what waits for the agreement, and gathers of values for the whole step. */
static void list_end_of_unit(listing *l, uint32_t piece, uint32_t layer, uint32_t u)
{
    const slc_job *job = &l->cut->profile->job;
    const slc_unit unit = unit_of_layer(l, u, layer);
    const slc_strategy strategy = slc_cut_strategy(l->cut, u);
    if (!unit.trainable) return;
    if (slc_waits_for_agreement(job, strategy)) list_update(l, piece, u, &unit, 0);
    const slc_item_kind gather =
        slc_cut_holds(l->cut, u) ? SLC_ITEM_GATHER_WINDOW : slc_operations_of(job, &unit, strategy).gather_value;
    list_unit(l, piece, u, &unit, gather, 0, l->last[u]);
    if (reads_updates(l, u) && (!slc_gathers_windows(strategy) || slc_cut_holds(l->cut, u)))
        l->out->operations[l->last[u]].within_s = before_layer(l, piece, layer);
}

/* Lists the agreement of all stages, and what ends the step of each unit. */
static void list_end(listing *l, uint32_t stage)
{
    const slc_job *job = &l->cut->profile->job;
    if (job->barrier) list_agreement(l, stage);
    for (uint32_t c = 0; c < l->cut->shape.chunks; c++) {
        const uint32_t piece = c * l->cut->shape.stages + stage;
        for (uint32_t layer = l->cut->first_layer[piece]; layer < slc_piece_end(l->cut, piece); layer++)
            for (uint32_t u = 0; u < job->unit_count; u++) list_end_of_unit(l, piece, layer, u);
    }
}

/* ---- Gathers in each micro-batch ---- */

/* Returns true if the window that a unit needs in a layer's slot begins there, and not in the slot of the layer that
 * runs before it. */
static bool begins_in(const slc_unit *unit, uint32_t layer, bool backward, uint32_t before)
{
    bool reads = false, read_before = false;
    for (uint32_t i = 0; i < unit->use_count; i++) {
        const bool value = !backward || unit->uses[i].backward_value;
        reads |= value && unit->uses[i].layer == layer;
        read_before |= value && unit->uses[i].layer == before;
    }
    return reads && !read_before;
}

/* Lists the gathers of a piece's forward or backward. The backward's first slot needs none where it follows the
 * forward's last at once, in the last piece of a stage that turns back there. */
static void list_piece_gathers(listing *l, uint32_t piece, bool backward, bool at_once)
{
    const slc_cut_job *cut = l->cut;
    const uint32_t first = cut->first_layer[piece], end = slc_piece_end(cut, piece);
    double at_s = 0, ahead_s = -1;
    for (uint32_t k = 0; k < end - first; k++) {
        const uint32_t layer = backward ? end - 1 - k : first + k;
        const uint32_t before = !k ? (backward && at_once ? layer : SLC_NONE) : backward ? layer + 1 : layer - 1;
        for (uint32_t u = 0; u < cut->profile->job.unit_count; u++) {
            const slc_unit unit = slc_unit_of_stage(&cut->profile->job.units[u]);
            if (slc_looks_up(&cut->profile->job.units[u]) || !slc_gathers_windows(slc_cut_strategy(cut, u)) ||
                slc_cut_holds(cut, u) || !begins_in(&unit, layer, backward, before))
                continue;
            l->out->gathers[l->out->times.gather_count++] =
                (slc_stage_gather){.piece = piece,
                                   .unit = u,
                                   .backward = backward,
                                   .at_s = at_s,
                                   .ahead_s = ahead_s,
                                   .link_s = operation_s(cut->profile, &unit, SLC_ITEM_GATHER_WINDOW),
                                   .after = l->last[u]};
        }
        ahead_s = at_s;
        at_s += !backward               ? slc_layer_forward_s(cut->profile, layer)
                : cut->schedule->splits ? slc_layer_backward_s(cut->profile, cut->recompute, layer) -
                                              slc_layer_weight_s(cut->profile, layer)
                                        : slc_layer_backward_s(cut->profile, cut->recompute, layer);
    }
}

/* Returns true if the piece turns each micro-batch back at once. Only the last stage without chunks does, and not if
 * all forwards come first. */
static bool turns_at_once(const slc_cut_job *cut, uint32_t piece)
{
    return slc_pipeline_turns_at_once(cut->schedule, &cut->shape) && piece + 1 == slc_pipeline_pieces(&cut->shape);
}

static void list_gathers(listing *l)
{
    for (uint32_t piece = 0; piece < slc_pipeline_pieces(&l->cut->shape); piece++)
        for (int backward = 0; backward < 2; backward++)
            list_piece_gathers(l, piece, backward, turns_at_once(l->cut, piece));
    l->out->times.gathers = l->out->gathers;
}

/* Counts the most gathers that a micro-batch can have: one for each use in each direction. */
static size_t gathers_of(const slc_job *job)
{
    size_t count = 0;
    for (uint32_t u = 0; u < job->unit_count; u++) count += 2 * (size_t)job->units[u].use_count;
    return count;
}

static bool list_operations(const slc_cut_job *cut, slc_pipeline_costs *out)
{
    const size_t units = cut->profile->job.unit_count;
    listing l = {.cut = cut, .out = out, .last = calloc(units + 1, sizeof *l.last)};
    const size_t earlier = cut->profile->job.each ? cut->profile->job.micro_batches - 1 : 0;
    out->operations = calloc((5 + earlier) * units + cut->shape.stages + 1, sizeof *out->operations);
    out->gathers = calloc(gathers_of(&cut->profile->job) + 1, sizeof *out->gathers);
    if (!l.last || !out->operations || !out->gathers) {
        free(l.last);
        return false;
    }
    for (size_t u = 0; u < units; u++) l.last[u] = SLC_NO_OPERATION;
    for (uint32_t s = 0; s < cut->shape.stages; s++) {
        for (uint32_t c = cut->shape.chunks; c-- > 0;) list_backward(&l, c * cut->shape.stages + s);
        list_end(&l, s);
    }
    list_gathers(&l);
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
        double forward_s = 0, backward_s = 0, weight_s = 0;
        for (uint32_t l = cut->first_layer[p]; l < slc_piece_end(cut, p); l++) {
            forward_s += slc_layer_forward_s(profile, l);
            backward_s += slc_layer_backward_s(profile, cut->recompute, l);
            weight_s += slc_layer_weight_s(profile, l);
        }
        const uint32_t first = cut->first_layer[p], layers = slc_piece_end(cut, p) - first;
        /* A gather for a layer that is alone in its piece is in use until its slot ends. */
        room[5 * (size_t)pieces + p] = layers > 1 ? slc_layer_forward_s(profile, first + layers - 1) : 0;
        room[6 * (size_t)pieces + p] =
            layers == 1             ? 0
            : cut->schedule->splits ? slc_layer_backward_s(profile, false, first) - slc_layer_weight_s(profile, first)
                                    : slc_layer_backward_s(profile, cut->recompute, first);
        room[p] = forward_s;
        room[pieces + p] = backward_s - weight_s;
        room[2 * (size_t)pieces + p] = weight_s;
        if (p + 1 == pieces) break; /* nothing is sent behind the last one */
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
    out->times.forward_last_s = room + 5 * (size_t)pieces;
    out->times.backward_last_s = room + 6 * (size_t)pieces;
    out->times.latency_s = channel_of(&profile->times)->latency_s;
    if (rows && cut->shape.stages > 1) out->times.rows_s = slc_message_s(&profile->times, slc_cut_rows_bytes(rows));
}

sluice_status slc_pipeline_costs_init(const slc_cut_job *cut, slc_pipeline_costs *out)
{
    *out = (slc_pipeline_costs){.rooms = calloc(7 * (size_t)slc_pipeline_pieces(&cut->shape) + 1, sizeof *out->rooms)};
    if (!out->rooms || !list_operations(cut, out))
        return slc_error(SLUICE_ERR_MEMORY, "costs of %u stages", cut->shape.stages);
    fill_pieces(cut, out);
    return SLUICE_OK;
}

void slc_pipeline_costs_fini(slc_pipeline_costs *costs)
{
    free(costs->gathers);
    free(costs->operations);
    free(costs->rooms);
    *costs = (slc_pipeline_costs){0};
}
