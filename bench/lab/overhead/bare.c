/* One plan, unrolled: each operation is an slc_op whose waits are counted from the first operation and slot of its
 * pass, and each step adds the pass's beginning to them. The late operations of the first pass do nothing.
 * tests/command/overhead_test.sh covers this file. */
#include "bench/lab/overhead/bare.h"

#include "lib/base/gate.h"
#include "lib/base/hash/fnv.h"
#include "lib/base/ownership.h"
#include "lib/base/status.h"
#include "lib/kernels/norm/norm.h"

#include <stdlib.h>
#include <string.h>

enum { SLOTS, OPERATIONS, LANES };
enum { MOST_OPERATIONS = 2040 /* two passes fit into the queue */, NON_FINITE_WORD = SLC_NORM_BINS };

/* Counts that the lanes must have reached, from the pass's beginning; negative counts belong to the previous pass. */
typedef struct {
    bool waits[LANES];
    int32_t count[LANES];
} bare_wait;

typedef struct {
    uint64_t number; /* 0: there was no such step */
    double learning_rate;
    int64_t non_finite;
} bare_step;

typedef struct {
    slc_bare *bare;
    const slc_item *item;
    bare_step *step;
} bare_context;

typedef struct {
    slc_op op;
    bare_wait wait;
    bool late;
} bare_operation;

typedef struct {
    bare_wait wait;
    uint32_t layer;
    const float *value;
    float *gradient; /* NULL: forward */
} bare_slot;

typedef struct {
    float *value, *shard, *gradient, *reduced; /* NULL: it has none */
    float *state[SLUICE_OPTIMIZER_STATES_MAX];
} bare_unit;

struct slc_bare {
    slc_comm *comm;
    slc_overhead_model *model;
    slc_overhead_optimizer *optimizer;
    const slc_job *job;
    const slc_plan *plan;
    slc_segment segment;
    int rank;
    bare_unit *units;
    bare_operation *operations;
    bare_slot *slots;
    bare_context *contexts[2]; /* contexts of the operations, for even and odd passes */
    slc_op *batch;
    uint32_t operation_count, slot_count, late_end, agree; /* agree: ordinal of the agreement among the operations */
    bare_step steps[2];
    int64_t *agreement;
    slc_gate slots_done;
    uint32_t slots_posted, first_operation, next_operation; /* first_operation: of the last pass */
    uint64_t passes;
};

/* ---- Addresses ---- */

static void *at(const slc_bare *bare, slc_buffer_kind kind, uint32_t unit, uint32_t index)
{
    uint32_t buffer = slc_plan_buffer(bare->plan, kind, unit, index);
    return buffer == SLC_NONE ? NULL : (char *)bare->segment.base + bare->plan->buffers[buffer].offset;
}

/* The part of a block that this rank updates; `whole`: every rank updates all of it. */
static slc_part part_of(const slc_bare *bare, uint32_t u, uint64_t block, bool whole)
{
    const slc_unit *unit = &bare->job->units[u];
    return slc_part_of_rank(unit->elements, unit->block_elements, block, whole ? 1 : bare->job->world,
                            whole ? 0 : (uint32_t)bare->rank);
}

static float *reduced_at(const slc_bare *bare, uint32_t u, const slc_part *part)
{
    const bare_unit *unit = &bare->units[u];
    return unit->reduced ? unit->reduced + part->shard_first : unit->gradient + part->first;
}

/* ---- Calls on the communication thread ---- */

static sluice_status inspect(void *argument)
{
    bare_context *context = argument;
    slc_bare *bare = context->bare;
    const slc_item *item = context->item;
    for (uint64_t b = item->first_block; b < item->first_block + item->block_count; b++) {
        slc_part part = part_of(bare, item->unit, b, false);
        bool finite = true;
        sluice_status status = slc_all_finite(&bare->optimizer->stream, SLUICE_FP32, part.count,
                                              reduced_at(bare, item->unit, &part), &finite);
        if (status) return status;
        context->step->non_finite += !finite;
    }
    return SLUICE_OK;
}

static sluice_status begin_agreement(void *argument)
{
    bare_context *context = argument;
    memset(context->bare->agreement, 0, 8 * slc_agreement_words(context->bare->job));
    context->bare->agreement[NON_FINITE_WORD] = context->step->non_finite;
    return SLUICE_OK;
}

static sluice_status nothing(void *argument)
{
    (void)argument;
    return SLUICE_OK;
}

static sluice_status update(void *argument)
{
    const bare_context *context = argument;
    const slc_bare *bare = context->bare;
    uint32_t u = context->item->unit;
    bool dp = bare->plan->strategies[u] == SLC_DP;
    const bare_unit *unit = &bare->units[u];
    for (uint64_t b = 0; b < context->item->block_count; b++) {
        slc_part part = part_of(bare, u, context->item->first_block + b, dp);
        sluice_update range = {.value = unit->shard ? unit->shard + part.shard_first : unit->value + part.first,
                               .gradient = reduced_at(bare, u, &part),
                               .count = part.count,
                               .step = context->step->number,
                               .learning_rate = context->step->learning_rate,
                               .gradient_factor = 1};
        for (uint32_t s = 0; s < bare->job->states; s++)
            range.state[s] = unit->state[s] + part.shard_first; /* under dp the state is whole, and so is the part */
        sluice_status status = bare->optimizer->optimizer.update(&range, bare->optimizer);
        if (status) return status;
    }
    return SLUICE_OK;
}

/* ---- Unrolling the plan ---- */

static void fill_collective(const slc_bare *bare, const slc_item *item, slc_op *op)
{
    const bare_unit *unit = &bare->units[item->unit];
    op->src = op->dst = unit->gradient;
    switch (item->kind) {
    case SLC_ITEM_REDUCE_SCATTER:
    case SLC_ITEM_ALL_REDUCE:
        op->kind = item->kind == SLC_ITEM_ALL_REDUCE ? SLC_ALL_REDUCE : SLC_REDUCE_SCATTER;
        op->scale = (float)(1.0 / bare->job->world);
        if (unit->reduced) op->dst = unit->reduced;
        if (unit->reduced) op->dst_layout = SLC_SHARD;
        op->call = inspect;
        return;
    case SLC_ITEM_GATHER_VALUE:
        op->kind = SLC_ALL_GATHER;
        op->src = op->dst = unit->value;
        return;
    default: /* a window, because a plan of one micro-batch gathers no gradients */
        op->kind = SLC_ALL_GATHER;
        op->src_layout = SLC_SHARD;
        op->src = unit->shard;
        op->dst = at(bare, SLC_BUFFER_GATHERED, item->unit, item->index);
    }
}

static void fill_agreement(const slc_bare *bare, slc_op *op)
{
    op->kind = SLC_ALL_REDUCE;
    op->dtype = SLUICE_INT64;
    op->elements = op->block_elements = slc_agreement_words(bare->job);
    op->block_count = 1;
    op->src = op->dst = bare->agreement;
    op->start = begin_agreement;
}

static slc_op make_operation(const slc_bare *bare, const slc_item *item)
{
    slc_op op = {.dtype = SLUICE_FP32, .scale = 1, .what = "bare operation"};
    if (item->kind == SLC_ITEM_AGREE) {
        fill_agreement(bare, &op);
        return op;
    }
    op.elements = bare->job->units[item->unit].elements;
    op.block_elements = bare->job->units[item->unit].block_elements;
    op.first_block = item->first_block;
    op.block_count = item->block_count;
    if (item->kind == SLC_ITEM_UPDATE) {
        op.kind = SLC_CALL;
        op.call = update;
    } else {
        fill_collective(bare, item, &op);
    }
    return op;
}

static bare_slot make_slot(const slc_bare *bare, uint32_t slot)
{
    bare_slot made = {.layer = slc_slot_layer(bare->job, slot)};
    for (uint32_t u = 0; u < bare->job->unit_count; u++) {
        const slc_unit *unit = &bare->job->units[u];
        slc_window window;
        if (unit->uses[0].layer != made.layer) continue;
        made.value = bare->units[u].value;
        for (uint32_t w = 0; !made.value && slc_unit_window(bare->job, unit, true, w, &window); w++)
            if (window.first_slot <= slot && slot <= window.last_slot) made.value = at(bare, SLC_BUFFER_GATHERED, u, w);
        if (!slc_slot_is_forward(bare->job, slot)) made.gradient = bare->units[u].gradient;
    }
    return made;
}

/* `ordinal` is the position of each item in its lane. */
static bare_wait make_wait(const slc_bare *bare, const slc_item *item, const uint32_t *ordinal)
{
    const slc_item *items = bare->plan->train.items;
    bare_wait wait = {0};
    for (uint32_t a = 0; a < item->after_count; a++) {
        const slc_after *after = &item->after[a];
        int lane = items[after->item].kind == SLC_ITEM_SLOT ? SLOTS : OPERATIONS;
        int32_t all = (int32_t)(lane == SLOTS ? bare->slot_count : bare->operation_count);
        int32_t count = (int32_t)ordinal[after->item] + 1 - (after->previous ? all : 0);
        if (wait.waits[lane] && wait.count[lane] >= count) continue;
        wait.waits[lane] = true;
        wait.count[lane] = count;
    }
    return wait;
}

static void unroll(slc_bare *bare, const uint32_t *ordinal)
{
    const slc_program *program = &bare->plan->train;
    for (uint32_t i = 0; i < program->item_count; i++) {
        const slc_item *item = &program->items[i];
        uint32_t k = ordinal[i];
        bare_wait wait = make_wait(bare, item, ordinal);
        if (item->kind == SLC_ITEM_SLOT) {
            bare->slots[k] = make_slot(bare, item->slot);
            bare->slots[k].wait = wait;
            continue;
        }
        bare->operations[k] = (bare_operation){make_operation(bare, item), wait, item->late};
        if (item->late) bare->late_end = k + 1;
        if (item->kind == SLC_ITEM_AGREE) bare->agree = k;
        for (uint32_t p = 0; p < 2; p++)
            bare->contexts[p][k] = (bare_context){bare, item, &bare->steps[item->late ? p ^ 1 : p]};
    }
}

static sluice_status read_plan(slc_bare *bare)
{
    const slc_program *program = &bare->plan->train;
    uint32_t *ordinal = calloc((size_t)program->item_count + 1, sizeof *ordinal);
    if (!ordinal) return slc_error(SLUICE_ERR_MEMORY, "a plan of %u items", program->item_count);
    for (uint32_t i = 0; i < program->item_count; i++)
        ordinal[i] = program->items[i].kind == SLC_ITEM_SLOT ? bare->slot_count++ : bare->operation_count++;
    bare->operations = calloc((size_t)bare->operation_count + 1, sizeof *bare->operations);
    bare->slots = calloc((size_t)bare->slot_count + 1, sizeof *bare->slots);
    bare->batch = calloc((size_t)bare->operation_count + 1, sizeof *bare->batch);
    for (int p = 0; p < 2; p++) bare->contexts[p] = calloc((size_t)bare->operation_count + 1, sizeof **bare->contexts);
    sluice_status status = SLUICE_OK;
    if (!bare->operations || !bare->slots || !bare->batch || !bare->contexts[0] || !bare->contexts[1])
        status = slc_error(SLUICE_ERR_MEMORY, "a plan of %u items", program->item_count);
    else if (bare->operation_count > MOST_OPERATIONS || bare->job->micro_batches != 1)
        status = slc_error(SLUICE_ERR_ARGUMENT, "a plan of %u operations and %u micro-batches; at most %d, and one",
                           bare->operation_count, bare->job->micro_batches, MOST_OPERATIONS);
    else
        unroll(bare, ordinal);
    free(ordinal);
    return status;
}

static sluice_status locate_units(slc_bare *bare)
{
    bare->units = calloc((size_t)bare->job->unit_count + 1, sizeof *bare->units);
    if (!bare->units) return slc_error(SLUICE_ERR_MEMORY, "%u units", bare->job->unit_count);
    for (uint32_t u = 0; u < bare->job->unit_count; u++) {
        bare_unit *unit = &bare->units[u];
        unit->value = at(bare, SLC_BUFFER_VALUE, u, 0);
        unit->shard = at(bare, SLC_BUFFER_VALUE_SHARD, u, 0);
        unit->gradient = at(bare, SLC_BUFFER_GRADIENT, u, 0);
        unit->reduced = at(bare, SLC_BUFFER_REDUCED, u, 0);
        for (uint32_t s = 0; s < bare->job->states; s++) unit->state[s] = at(bare, SLC_BUFFER_STATE, u, s);
    }
    return SLUICE_OK;
}

static sluice_status make_memory(slc_bare *bare)
{
    sluice_status status = slc_segment_create(bare->optimizer->device, bare->plan->arena_bytes, &bare->segment);
    if (!status) status = slc_segment_populate(&bare->segment);
    if (status) return status;
    bare->agreement = at(bare, SLC_BUFFER_AGREEMENT, SLC_NONE, 0);
    return slc_comm_attach(bare->comm, &bare->segment, at(bare, SLC_BUFFER_SCRATCH, SLC_NONE, 0),
                           bare->job->scratch_bytes);
}

sluice_status slc_bare_open(sluice_world *world, slc_overhead_model *model, slc_overhead_optimizer *optimizer,
                            const slc_job *job, const slc_plan *plan, slc_bare **out)
{
    slc_bare *bare = calloc(1, sizeof *bare);
    if (!bare) return slc_error(SLUICE_ERR_MEMORY, "bare run");
    bare->comm = slc_world_comm(world);
    bare->rank = sluice_world_rank(world);
    bare->model = model;
    bare->optimizer = optimizer;
    bare->job = job;
    bare->plan = plan;
    slc_gate_init(&bare->slots_done);
    sluice_status status = make_memory(bare);
    if (!status) status = locate_units(bare);
    if (!status) status = read_plan(bare);
    bare->next_operation = atomic_load(&slc_comm_completed(bare->comm)->value); /* nothing is pending */
    if (!status) {
        *out = bare;
        return SLUICE_OK;
    }
    slc_bare_close(bare);
    return status;
}

void slc_bare_close(slc_bare *bare)
{
    if (!bare) return;
    (void)slc_comm_attach(bare->comm, NULL, NULL, 0);
    if (bare->segment.base) slc_segment_destroy(&bare->segment);
    free(bare->units);
    free(bare->operations);
    free(bare->slots);
    free(bare->batch);
    free(bare->contexts[0]);
    free(bare->contexts[1]);
    free(bare);
}

/* ---- Running ---- */

static sluice_status submit_pass(slc_bare *bare, uint32_t first_slot)
{
    uint32_t first = bare->next_operation;
    bool has_previous = bare->steps[(bare->passes & 1) ^ 1].number != 0;
    for (uint32_t k = 0; k < bare->operation_count; k++) {
        const bare_operation *from = &bare->operations[k];
        slc_op *op = &bare->batch[k];
        *op = from->late && !has_previous ? (slc_op){.kind = SLC_CALL, .call = nothing} : from->op;
        op->context = &bare->contexts[bare->passes & 1][k];
        if (from->wait.waits[SLOTS]) op->wait[SLOTS] = &bare->slots_done;
        if (from->wait.waits[OPERATIONS]) op->wait[OPERATIONS] = slc_comm_completed(bare->comm);
        op->wait_value[SLOTS] = first_slot + (uint32_t)from->wait.count[SLOTS];
        op->wait_value[OPERATIONS] = first + (uint32_t)from->wait.count[OPERATIONS];
    }
    bare->first_operation = first;
    bare->next_operation += bare->operation_count;
    return slc_comm_submit(bare->comm, bare->batch, bare->operation_count, NULL);
}

static sluice_status run_slot(slc_bare *bare, const bare_slot *slot)
{
    if (slot->wait.waits[OPERATIONS]) {
        uint32_t count = bare->first_operation + (uint32_t)slot->wait.count[OPERATIONS];
        sluice_status status = slc_comm_wait(bare->comm, count);
        if (status) return status;
    }
    if (slot->gradient)
        slc_overhead_backward(bare->model, slot->layer, slot->value, slot->gradient);
    else
        slc_overhead_forward(bare->model, slot->value);
    slc_gate_post(&bare->slots_done, ++bare->slots_posted);
    slc_comm_notify(bare->comm);
    return SLUICE_OK;
}

sluice_status slc_bare_step(slc_bare *bare, double learning_rate)
{
    sluice_status status = SLUICE_OK;
    /* This step overwrites the record of the step before the last, so that step's late operations must have ended. */
    if (bare->passes) status = slc_comm_wait(bare->comm, bare->first_operation + bare->late_end);
    bare->steps[bare->passes & 1] = (bare_step){.number = bare->passes + 1, .learning_rate = learning_rate};
    if (!status) status = submit_pass(bare, bare->slots_posted);
    for (uint32_t s = 0; !status && s < bare->slot_count; s++) status = run_slot(bare, &bare->slots[s]);
    if (!status) status = slc_comm_wait(bare->comm, bare->first_operation + bare->agree + 1);
    bare->passes++;
    return status;
}

sluice_status slc_bare_sync(slc_bare *bare)
{
    sluice_status status = SLUICE_OK;
    bare_step *last = &bare->steps[(bare->passes & 1) ^ 1];
    for (uint32_t k = 0; !status && last->number && k < bare->operation_count; k++) {
        if (!bare->operations[k].late) continue;
        slc_op op = bare->operations[k].op;
        op.context = &bare->contexts[bare->passes & 1][k];
        op.wait[OPERATIONS] = slc_comm_completed(bare->comm);
        op.wait_value[OPERATIONS] = bare->next_operation++;
        status = slc_comm_submit(bare->comm, &op, 1, NULL);
    }
    if (!status) status = slc_comm_wait(bare->comm, bare->next_operation);
    last->number = 0; /* the last step has no late operations left */
    return status;
}

uint64_t slc_bare_hash(const slc_bare *bare)
{
    uint64_t hash = SLC_FNV_START;
    for (uint32_t u = 0; u < bare->job->unit_count; u++) {
        const bare_unit *unit = &bare->units[u];
        for (uint64_t b = 0; b < slc_unit_blocks(&bare->job->units[u]); b++) {
            slc_part part = part_of(bare, u, b, false);
            const float *owned = unit->shard ? unit->shard + part.shard_first : unit->value + part.first;
            hash = slc_fnv(hash, owned, part.count * sizeof *owned);
        }
    }
    return hash;
}
