/* A stage's job: layers and their slots are numbered anew, chunk after chunk. If backwards are split, layer 0 is one
 * that the profile does not have: its forward takes no time, and its backward is the weight gradients of the whole
 * stage, until which everything stays that a backward reads. stage_job_test.c covers this file. */
#include "sched/pipeline/stage_job.h"

#include "lib/base/integer.h"
#include "lib/base/row_list.h"
#include "lib/base/status.h"
#include "lib/plan/strategy_table.h"

#include <stdlib.h>
#include <string.h>

/* ---- Under construction ---- */

typedef struct {
    const slc_cut_job *cut;
    const slc_pipeline_program *program;
    slc_stage_job *stage;
    const slc_job *whole;
    uint32_t layers;  /* of the stage's job */
    uint32_t *local;  /* [layers of the profile] its number in the stage's job; SLC_NONE */
    uint32_t *moment; /* [M * slots] which of the stage's slots a slot of a micro-batch is */
    uint32_t activation_room;
    bool failed;
} build;

/* Ends of the channels of one piece, by slc_activation_turn: 0: it has none. */
typedef struct {
    uint32_t forward_in, forward_out, backward_in, backward_out;
} piece_channels;

static bool splits(const build *b)
{
    return b->cut->schedule->splits;
}

static uint32_t chunk_piece(const build *b, uint32_t chunk)
{
    return chunk * b->cut->shape.stages + b->stage->stage;
}

static uint32_t forward_slot(const build *b, uint32_t layer)
{
    return b->local[layer];
}

static uint32_t backward_slot(const build *b, uint32_t layer)
{
    return 2 * b->layers - 1 - b->local[layer];
}

/* ---- Layers, times and slots ---- */

static void number_layers(build *b)
{
    const uint32_t chunks = b->cut->shape.chunks;
    for (uint32_t l = 0; l < b->whole->layer_count; l++) b->local[l] = SLC_NONE;
    b->layers = splits(b);
    for (uint32_t c = 0; c < chunks; c++) {
        const uint32_t piece = chunk_piece(b, c);
        b->stage->first_local[c] = b->layers;
        for (uint32_t l = b->cut->first_layer[piece]; l < slc_piece_end(b->cut, piece); l++) b->local[l] = b->layers++;
    }
    b->stage->first_local[chunks] = b->layers;
}

static bool copy_layers(build *b)
{
    slc_stage_job *stage = b->stage;
    slc_job *job = &stage->job;
    const slc_times *times = &b->cut->profile->times;
    const size_t layers = (size_t)b->layers + 1;
    bool *can = calloc(layers, sizeof *can);
    job->layer_count = b->layers;
    job->can_recompute = can;
    job->layers = calloc(layers, sizeof *job->layers);
    stage->layer = calloc(layers, sizeof *stage->layer);
    stage->recompute = calloc(layers, sizeof *stage->recompute);
    stage->times = *times;
    stage->times.weight_s = NULL;
    stage->times.slot_s = calloc(2 * layers, sizeof *stage->times.slot_s);
    stage->times.recompute_s = calloc(layers, sizeof *stage->times.recompute_s);
    if (!can || !job->layers || !stage->layer || !stage->recompute || !stage->times.slot_s || !stage->times.recompute_s)
        return false;
    if (splits(b)) {
        job->layers[0] = "weight gradients";
        stage->layer[0] = SLC_NONE;
    }
    for (uint32_t l = 0; l < b->whole->layer_count; l++) {
        const uint32_t local = b->local[l];
        if (local == SLC_NONE) continue;
        job->layers[local] = b->whole->layers[l];
        can[local] = b->whole->can_recompute && b->whole->can_recompute[l];
        stage->layer[local] = l;
        stage->recompute[local] = b->cut->recompute && can[local];
        stage->times.slot_s[forward_slot(b, l)] = times->slot_s[slc_forward_slot(l)];
        stage->times.slot_s[backward_slot(b, l)] = times->slot_s[slc_backward_slot(b->whole, l)];
        stage->times.recompute_s[local] = times->recompute_s[l];
    }
    return true;
}

static void add_slot(build *b, uint32_t micro_batch, uint32_t slot, uint32_t task)
{
    slc_stage_job *stage = b->stage;
    b->moment[(size_t)micro_batch * 2 * b->layers + slot] = stage->slot_count;
    stage->slots[stage->slot_count++] = (slc_stage_slot){micro_batch, slot, task};
}

bool slc_stage_same_micro_batch(const slc_stage_job *stage, uint32_t task, uint32_t other)
{
    return other < stage->task_count && stage->tasks[task].piece == stage->tasks[other].piece &&
           stage->tasks[task].micro_batch == stage->tasks[other].micro_batch;
}

/* Returns true if each forward leads to the backward of its micro-batch without another task between them. */
static bool turns_back_at_once(const slc_stage_job *stage)
{
    for (uint32_t t = 0; t < stage->task_count; t++)
        if (stage->tasks[t].kind == SLC_TASK_FORWARD && !slc_stage_same_micro_batch(stage, t, t + 1)) return false;
    return true;
}

static bool list_slots(build *b)
{
    const slc_pipeline_program *program = b->program;
    slc_stage_job *stage = b->stage;
    const slc_task *tasks = slc_pipeline_tasks(program, stage->stage);
    const size_t count = (size_t)program->micro_batches * 2 * b->layers;
    stage->slots = calloc(count + 1, sizeof *stage->slots);
    stage->tasks = calloc((size_t)program->task_count + 1, sizeof *stage->tasks);
    b->moment = calloc(count + 1, sizeof *b->moment);
    stage->first_slot = calloc((size_t)program->task_count + 1, sizeof *stage->first_slot);
    if (!stage->slots || !stage->tasks || !b->moment || !stage->first_slot) return false;
    memcpy(stage->tasks, tasks, program->task_count * sizeof *tasks);
    stage->task_count = program->task_count;
    stage->ahead = slc_pipeline_ahead(&program->shape);
    for (uint32_t t = 0; t < program->task_count; t++) {
        const uint32_t chunk = tasks[t].piece / program->shape.stages, m = tasks[t].micro_batch;
        const uint32_t first = stage->first_local[chunk], end = stage->first_local[chunk + 1];
        stage->first_slot[t] = stage->slot_count;
        if (tasks[t].kind == SLC_TASK_FORWARD) {
            if (splits(b)) add_slot(b, m, 0, t);
            for (uint32_t l = first; l < end; l++) add_slot(b, m, l, t);
        } else if (tasks[t].kind == SLC_TASK_WEIGHT) {
            add_slot(b, m, 2 * b->layers - 1, t);
        } else {
            for (uint32_t l = end; l-- > first;) add_slot(b, m, 2 * b->layers - 1 - l, t);
        }
    }
    stage->first_slot[program->task_count] = stage->slot_count;
    stage->job.turns_back_later = !turns_back_at_once(stage);
    return true;
}

/* ---- Lives ---- */

/* Returns the number of a task's first slot in the step. A task before the step counts as the first one; a task after
 * the step begins after the step's last slot. */
static uint32_t task_begin(const build *b, int64_t task)
{
    const int64_t count = b->program->task_count;
    return b->stage->first_slot[task < 0 ? 0 : task > count ? count : task];
}

/* Returns how many micro-batches have this life at once, if it begins `early` tasks sooner and ends `late` tasks later,
 * because messages take that long. */
static uint32_t most_at_once(const build *b, const slc_activation_life *life, uint32_t early, uint32_t late)
{
    const uint32_t slots = 2 * b->layers;
    uint32_t most = 1, oldest = 0;
    for (uint32_t m = 0; m < b->program->micro_batches; m++) {
        uint32_t from = b->moment[(size_t)m * slots + life->first_slot];
        if (early) from = task_begin(b, (int64_t)b->stage->slots[from].task - early);
        for (; oldest < m; oldest++) {
            uint32_t to = b->moment[(size_t)oldest * slots + life->last_slot];
            if (late) to = task_begin(b, (int64_t)b->stage->slots[to].task + late + 1) - 1;
            if (to >= from) break;
        }
        if (m - oldest + 1 > most) most = m - oldest + 1;
    }
    return most;
}

static bool make_room(build *b, uint32_t more)
{
    slc_job *job = &b->stage->job;
    if (job->activation_count + more <= b->activation_room) return true;
    const uint32_t room = 2 * (job->activation_count + more);
    slc_activation_life *lives = realloc(job->activations, room * sizeof *lives);
    if (lives) job->activations = lives;
    slc_activation_turn *turns = lives ? realloc(b->stage->turns, room * sizeof *turns) : NULL;
    if (turns) b->stage->turns = turns;
    if (!turns) return false;
    b->activation_room = room;
    return true;
}

/* Adds the activation as often as there are micro-batches that have this life at once. */
static void add_life(build *b, slc_activation_life life, uint32_t receive, uint32_t send)
{
    slc_job *job = &b->stage->job;
    const bool again = life.recomputable && b->stage->recompute[slc_slot_layer(job, life.first_slot)];
    slc_activation_turn turn = {.receive = receive, .send = send};
    if (splits(b) && life.last_slot >= b->layers) life.last_slot = 2 * b->layers - 1;
    turn.turns = again ? 1 : most_at_once(b, &life, receive ? slc_pipeline_ahead(&b->cut->shape) : 0, send ? 1 : 0);
    if (!make_room(b, turn.turns)) {
        b->failed = true;
        return;
    }
    for (; turn.turn < turn.turns; turn.turn++) {
        job->activations[job->activation_count] = life;
        b->stage->turns[job->activation_count++] = turn;
    }
}

/* Finds the layers of [first, end) that read an activation which has come from a layer before them: the last one whose
 * forward reads it, and the first one whose backward does, which runs last. SLC_NONE: none does. */
static void readers_within(const slc_activation_readers *readers, uint32_t first, uint32_t end, uint32_t *forward,
                           uint32_t *backward)
{
    *forward = *backward = SLC_NONE;
    for (uint32_t n = readers->count; n-- > 0;) {
        const slc_reader *reader = &readers->at[n];
        if (reader->layer < first || reader->layer >= end) continue;
        if (reader->forward && *forward == SLC_NONE) *forward = reader->layer;
        if (reader->backward) *backward = reader->layer;
    }
}

/* Says what a piece keeps of an activation that has arrived, if the profile knows who reads it. One that only passes
 * through is sent on where it arrives. */
static void keep_for_readers(build *b, const slc_activation_readers *readers, uint32_t first, uint32_t end,
                             slc_activation_life *own)
{
    uint32_t forward, backward;
    readers_within(readers, first, end, &forward, &backward);
    own->last_forward_slot = forward_slot(b, forward == SLC_NONE ? first : forward);
    own->last_slot = backward == SLC_NONE ? own->last_forward_slot : backward_slot(b, backward);
}

/* Adds the part of an activation's life that lies in a piece, if a forward makes the activation. */
static void add_forward_life(build *b, const slc_activation_life *life, uint32_t first, uint32_t end,
                             const piece_channels *channels)
{
    const uint32_t made = life->first_slot, read = slc_last_reader_of(b->whole, life);
    const bool arrives = made < first && read >= first;
    if (!arrives && (made < first || made >= end)) return;
    const uint32_t last_read = read < end ? read : end - 1;
    slc_activation_life own = {.name = life->name,
                               .bytes = life->bytes,
                               .first_slot = forward_slot(b, arrives ? first : made),
                               .last_forward_slot = forward_slot(b, last_read)};
    const uint32_t last_layer = slc_slot_layer(b->whole, life->last_slot);
    if (slc_slot_is_forward(b->whole, life->last_slot))
        own.last_slot = forward_slot(b, last_layer < end ? last_layer : end - 1);
    else if (last_layer >= end)
        own.last_slot = own.last_forward_slot;
    else
        own.last_slot = backward_slot(b, last_layer > first ? last_layer : first);
    const slc_activation_readers *readers = slc_readers_of(b->whole, life);
    if (arrives && readers) keep_for_readers(b, readers, first, end, &own);
    own.recomputable = life->recomputable && !arrives && read < end;
    add_life(b, own, arrives ? channels->forward_in : 0, read >= end ? channels->forward_out : 0);
}

/* Adds the part of an activation's life that lies in a piece, if a backward makes the activation. */
static void add_backward_life(build *b, const slc_activation_life *life, uint32_t first, uint32_t end,
                              const piece_channels *channels)
{
    const uint32_t made = slc_slot_layer(b->whole, life->first_slot), read = slc_slot_layer(b->whole, life->last_slot);
    const bool arrives = made >= end && read < end;
    if (!arrives && (made < first || made >= end)) return;
    const uint32_t from = arrives ? end - 1 : made, to = read > first ? read : first;
    slc_activation_life own = {.name = life->name,
                               .bytes = life->bytes,
                               .first_slot = backward_slot(b, from),
                               .last_slot = backward_slot(b, to)};
    const uint32_t out = read < first ? channels->backward_out : 0;
    add_life(b, own, arrives ? channels->backward_in : 0, splits(b) && from != to ? 0 : out);
    /* Weight gradients that wait read the gradient of each layer. */
    for (uint32_t l = from; splits(b) && l-- > to;) {
        own.first_slot = backward_slot(b, l);
        add_life(b, own, 0, l == to ? out : 0);
    }
}

/* ---- Channels ---- */

static uint32_t stage_of_layer(const build *b, uint32_t layer)
{
    uint32_t piece = 0;
    while (slc_piece_end(b->cut, piece) <= layer) piece++;
    return piece % b->cut->shape.stages;
}

/* Returns the new end's place plus 1. */
static uint32_t add_channel(build *b, slc_stage_channel channel)
{
    slc_job *job = &b->stage->job;
    if (job->channel_count == SLC_STAGE_CHANNELS_MAX) {
        b->failed = true;
        return 0;
    }
    b->stage->channels[job->channel_count] = channel;
    return ++job->channel_count;
}

static uint32_t add_boundary(build *b, uint32_t behind, bool backward, bool receives, uint32_t slot)
{
    const slc_pipeline_shape *shape = &b->cut->shape;
    const uint32_t last = slc_piece_end(b->cut, behind) - 1, other = receives == backward ? behind + 1 : behind;
    return add_channel(b, (slc_stage_channel){.number = 2 * behind + backward,
                                              .stage = other % shape->stages,
                                              .receives = receives,
                                              .slot = slot,
                                              .unit = SLC_NONE,
                                              .bytes = backward ? slc_cut_backward_bytes(b->whole, last)
                                                                : slc_cut_forward_bytes(b->whole, last)});
}

/* Between pieces of one stage there is nothing to send. */
static piece_channels add_piece_channels(build *b, uint32_t piece)
{
    piece_channels ends = {0};
    const uint32_t pieces = slc_pipeline_pieces(&b->cut->shape);
    const uint32_t first = b->cut->first_layer[piece], last = slc_piece_end(b->cut, piece) - 1;
    if (b->cut->shape.stages == 1) return ends;
    if (piece) {
        ends.forward_in = add_boundary(b, piece - 1, false, true, forward_slot(b, first));
        ends.backward_out = add_boundary(b, piece - 1, true, false, backward_slot(b, first));
    }
    if (piece + 1 < pieces) {
        ends.forward_out = add_boundary(b, piece, false, false, forward_slot(b, last));
        ends.backward_in = add_boundary(b, piece, true, true, backward_slot(b, last));
    }
    return ends;
}

static uint32_t add_rows_channel(build *b, const slc_unit *rows, bool gradients, bool receives, uint32_t slot,
                                 uint32_t unit, uint32_t other_layer)
{
    return add_channel(b, (slc_stage_channel){.number = 2 * (slc_pipeline_pieces(&b->cut->shape) - 1) + gradients,
                                              .stage = stage_of_layer(b, other_layer),
                                              .receives = receives,
                                              .slot = slot,
                                              .unit = unit,
                                              .bytes = slc_cut_rows_bytes(rows)});
}

/* Adds a look-up in a table that lies elsewhere: its rows arrive for its forward, and their gradients leave after its
 * backward. */
static void add_looked_up(build *b, const slc_unit *rows)
{
    const uint32_t layer = rows->uses[0].layer, table = b->whole->units[rows->partner].uses[0].layer;
    const uint32_t back = splits(b) ? 2 * b->layers - 1 : backward_slot(b, layer);
    slc_activation_life life = {.name = rows->name,
                                .bytes = slc_cut_rows_bytes(rows) + slc_row_list_bytes(rows->most_rows),
                                .first_slot = forward_slot(b, layer),
                                .last_slot = forward_slot(b, layer),
                                .last_forward_slot = forward_slot(b, layer)};
    add_life(b, life, add_rows_channel(b, rows, false, true, life.first_slot, SLC_NONE, table), 0);
    if (!rows->trainable) return;
    life.first_slot = life.last_slot = back;
    life.last_forward_slot = 0;
    add_life(b, life, 0, add_rows_channel(b, rows, true, false, back, SLC_NONE, table));
}

/* Adds the table itself, with room for rows that are sent and for their gradients. */
static void add_table(build *b, const slc_unit *table, uint32_t own)
{
    const slc_unit *rows = &b->whole->units[table->partner];
    const uint32_t layer = rows->uses[0].layer;
    b->stage->job.scratch_bytes =
        slc_round_up(b->stage->job.scratch_bytes, 64) + slc_table_places_of(&b->stage->job, rows).bytes;
    add_rows_channel(b, rows, false, false, SLC_NONE, own, layer);
    if (rows->trainable) add_rows_channel(b, rows, true, true, SLC_NONE, own, layer);
}

static void add_lives(build *b)
{
    const uint32_t chunks = b->cut->shape.chunks;
    for (uint32_t c = 0; c < chunks; c++) {
        const uint32_t piece = chunk_piece(b, c);
        const uint32_t first = b->cut->first_layer[piece], end = slc_piece_end(b->cut, piece);
        const piece_channels channels = add_piece_channels(b, piece);
        for (uint32_t a = 0; a < b->whole->activation_count; a++) {
            const slc_activation_life *life = &b->whole->activations[a];
            if (slc_slot_is_forward(b->whole, life->first_slot))
                add_forward_life(b, life, first, end, &channels);
            else
                add_backward_life(b, life, first, end, &channels);
        }
    }
}

static bool copy_workspaces(build *b)
{
    slc_job *job = &b->stage->job;
    job->workspaces = calloc((size_t)b->whole->workspace_count + 1, sizeof *job->workspaces);
    for (uint32_t w = 0; job->workspaces && w < b->whole->workspace_count; w++) {
        slc_workspace_life life = b->whole->workspaces[w];
        const uint32_t layer = slc_slot_layer(b->whole, life.slot);
        if (b->local[layer] == SLC_NONE) continue;
        const bool forward = slc_slot_is_forward(b->whole, life.slot);
        life.slot = forward ? forward_slot(b, layer) : backward_slot(b, layer);
        job->workspaces[job->workspace_count++] = life;
    }
    return job->workspaces != NULL;
}

/* ---- Units ---- */

static bool copy_unit(build *b, const slc_unit *unit)
{
    slc_job *job = &b->stage->job;
    const uint32_t extra = splits(b) && unit->trainable;
    slc_unit *own = &job->units[job->unit_count];
    *own = slc_unit_of_stage(unit);
    own->uses = calloc((size_t)unit->use_count + extra, sizeof *own->uses);
    if (!own->uses) return false;
    job->unit_count++;
    own->use_count = unit->use_count + extra;
    if (extra) own->uses[0] = (slc_use){.layer = 0};
    own->adds_first = extra;
    for (uint32_t i = 0; i < unit->use_count; i++)
        own->uses[extra + i] = (slc_use){b->local[unit->uses[i].layer], unit->uses[i].backward_value};
    return true;
}

static bool copy_units(build *b)
{
    slc_stage_job *stage = b->stage;
    const slc_job *whole = b->whole;
    stage->job.units = calloc((size_t)whole->unit_count + 1, sizeof *stage->job.units);
    stage->strategies = calloc((size_t)whole->unit_count + 1, sizeof *stage->strategies);
    if (!stage->job.units || !stage->strategies) return false;
    for (uint32_t u = 0; u < whole->unit_count; u++) {
        const slc_unit *unit = &whole->units[u];
        if (b->local[unit->uses[0].layer] == SLC_NONE) continue;
        if (slc_looks_up(unit)) {
            add_looked_up(b, unit);
            continue;
        }
        if (!copy_unit(b, unit)) return false;
        const uint32_t own = stage->job.unit_count - 1;
        stage->strategies[own] = slc_cut_strategy(b->cut, u);
        stage->job.units[own].held = slc_cut_holds(b->cut, u);
        if (unit->role == SLC_UNIT_SPLIT) add_table(b, unit, own);
    }
    return true;
}

static void add_older_values(build *b)
{
    slc_stage_job *stage = b->stage;
    const slc_pipeline_program *program = b->program;
    const uint64_t older = program->schedule->versions(&program->shape, stage->stage) - 1;
    for (uint32_t u = 0; u < stage->job.unit_count; u++)
        stage->older_values_bytes +=
            older * stage->job.units[u].elements * sluice_dtype_bytes(stage->job.units[u].dtype);
    stage->job.scratch_bytes += stage->older_values_bytes;
}

/* ---- The whole ---- */

static bool make(build *b)
{
    b->local = calloc((size_t)b->whole->layer_count + 1, sizeof *b->local);
    b->stage->first_local = calloc((size_t)b->cut->shape.chunks + 1, sizeof *b->stage->first_local);
    b->stage->channels = calloc(SLC_STAGE_CHANNELS_MAX, sizeof *b->stage->channels);
    if (!b->local || !b->stage->first_local || !b->stage->channels) return false;
    number_layers(b);
    if (!copy_layers(b) || !list_slots(b) || !copy_units(b) || !copy_workspaces(b)) return false;
    add_lives(b);
    b->stage->job.turns = b->stage->turns;
    b->stage->job.channels = b->stage->channels;
    b->stage->job.stage_slots = b->stage->slots;
    add_older_values(b);
    return !b->failed;
}

sluice_status slc_stage_job_init(const slc_cut_job *cut, const slc_pipeline_program *program, uint32_t stage,
                                 slc_stage_job *out)
{
    build b = {.cut = cut, .program = program, .stage = out, .whole = &cut->profile->job};
    *out = (slc_stage_job){.stage = stage, .job = cut->profile->job};
    slc_job *job = &out->job;
    job->units = NULL;
    job->activations = NULL;
    job->readers = NULL;
    job->workspaces = NULL;
    job->layers = NULL;
    job->can_recompute = NULL;
    job->unit_count = job->activation_count = job->workspace_count = job->layer_count = 0;
    const bool made = make(&b);
    free(b.moment);
    free(b.local);
    return made ? SLUICE_OK : slc_error(SLUICE_ERR_MEMORY, "job of stage %u", stage);
}

void slc_stage_job_fini(slc_stage_job *stage)
{
    slc_job *job = &stage->job;
    for (uint32_t u = 0; u < job->unit_count; u++) free(job->units[u].uses);
    free(job->units);
    free(job->activations);
    free(job->workspaces);
    free(job->layers);
    free((bool *)job->can_recompute);
    free(stage->strategies);
    free(stage->recompute);
    free(stage->layer);
    free(stage->first_local);
    free(stage->turns);
    free(stage->tasks);
    free(stage->channels);
    free(stage->first_slot);
    free(stage->slots);
    free(stage->times.slot_s);
    free(stage->times.recompute_s);
    *stage = (slc_stage_job){0};
}
