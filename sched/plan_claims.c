/* Lifetimes: from the order of a program, when each transient buffer is claimed and released. */
#include "sched/plan_parts.h"

#include "lib/base/status.h"

#include <stdlib.h>

typedef struct {
    const slc_job *job;
    const slc_plan *plan;
    slc_program *program;
    slc_places places;
    uint32_t capacity;
    bool failed;
} claims;

static void claim(claims *c, uint32_t buffer, uint32_t from, uint32_t to)
{
    slc_program *program = c->program;
    if (program->claim_count == c->capacity) {
        uint32_t capacity = c->capacity ? 2 * c->capacity : 64;
        slc_claim *grown = realloc(program->claims, capacity * sizeof *grown);
        if (!grown) {
            c->failed = true;
            return;
        }
        program->claims = grown;
        c->capacity = capacity;
    }
    program->claims[program->claim_count++] = (slc_claim){buffer, 0, c->plan->buffers[buffer].bytes, from, to};
}

static void claim_gathered(claims *c, uint32_t buffer, uint32_t micro_batch, bool evaluate)
{
    const slc_buffer *b = &c->plan->buffers[buffer];
    slc_window window;
    if (!slc_unit_window(c->job, &c->job->units[b->unit], !evaluate, b->index, &window)) return;
    claim(c, buffer, slc_find_operation(&c->places, SLC_ITEM_GATHER_WINDOW, micro_batch, b->unit, b->index),
          slc_find_slot(&c->places, micro_batch, window.last_slot));
}

/* A gradient lives from the first slot that adds to it until its last reader: the reduction when the result goes
 * elsewhere, else the update. */
static void claim_gradient(claims *c, uint32_t buffer)
{
    const slc_job *job = c->job;
    uint32_t u = c->plan->buffers[buffer].unit, first, last_slot, last = job->micro_batches - 1;
    slc_unit_gradient_slots(job, &job->units[u], &first, &last_slot);
    bool moved = slc_needs_reduced(job, &job->units[u], c->plan->strategies[u]);
    for (uint32_t m = 0; m <= last; m++) {
        if (!job->each && m) break;
        uint32_t reduced_in = job->each ? m : last;
        uint32_t end = moved ? slc_find_operation(&c->places, SLC_ITEM_REDUCE_SCATTER, reduced_in, u, 0)
                             : slc_find_operation(&c->places, SLC_ITEM_UPDATE, last, u, 0);
        claim(c, buffer, slc_find_slot(&c->places, m, first), end);
    }
}

static void claim_reduced(claims *c, uint32_t buffer)
{
    uint32_t u = c->plan->buffers[buffer].unit, last = c->job->micro_batches - 1;
    slc_item_kind reader = c->plan->strategies[u] == SLC_DP ? SLC_ITEM_GATHER_GRADIENT : SLC_ITEM_UPDATE;
    claim(c, buffer, slc_find_operation(&c->places, SLC_ITEM_REDUCE_SCATTER, c->job->each ? 0 : last, u, 0),
          slc_find_operation(&c->places, reader, last, u, 0));
}

static void claim_activation(claims *c, uint32_t buffer, uint32_t micro_batch, bool evaluate)
{
    const slc_activation_life *life = &c->job->activations[c->plan->buffers[buffer].index];
    uint32_t last = evaluate ? life->last_forward_slot : life->last_slot;
    if (last < life->first_slot || (evaluate && last >= c->job->layer_count)) return;
    claim(c, buffer, slc_find_slot(&c->places, micro_batch, life->first_slot),
          slc_find_slot(&c->places, micro_batch, last));
}

static void claim_workspace(claims *c, uint32_t buffer, uint32_t micro_batch, bool evaluate)
{
    uint32_t layer = c->job->workspaces[c->plan->buffers[buffer].index].layer;
    uint32_t forward = slc_find_slot(&c->places, micro_batch, slc_forward_slot(layer));
    claim(c, buffer, forward, forward);
    if (evaluate) return;
    uint32_t backward = slc_find_slot(&c->places, micro_batch, slc_backward_slot(c->job, layer));
    claim(c, buffer, backward, backward);
}

static int by_start(const void *a, const void *b)
{
    const slc_claim *x = a, *y = b;
    if (x->from != y->from) return x->from < y->from ? -1 : 1;
    return x->buffer < y->buffer ? -1 : x->buffer > y->buffer;
}

sluice_status slc_plan_add_claims(const slc_job *job, slc_plan *plan, bool evaluate)
{
    slc_program *program = evaluate ? &plan->evaluate : &plan->train;
    claims c = {.job = job, .plan = plan, .program = program};
    uint32_t micro_batches = evaluate ? 1 : job->micro_batches;
    sluice_status status = slc_places_init(&c.places, job, program);
    if (status) return status;

    for (uint32_t b = 0; b < plan->buffer_count; b++) {
        const slc_buffer *buffer = &plan->buffers[b];
        for (uint32_t m = 0; m < micro_batches; m++) {
            if (buffer->kind == SLC_BUFFER_GATHERED) claim_gathered(&c, b, m, evaluate);
            if (buffer->kind == SLC_BUFFER_ACTIVATION) claim_activation(&c, b, m, evaluate);
            if (buffer->kind == SLC_BUFFER_WORKSPACE) claim_workspace(&c, b, m, evaluate);
        }
        if (evaluate) continue;
        if (buffer->kind == SLC_BUFFER_REDUCED) claim_reduced(&c, b);
        if (buffer->kind == SLC_BUFFER_GRADIENT && slc_gradient_is_transient(plan->strategies[buffer->unit]))
            claim_gradient(&c, b);
    }
    slc_places_fini(&c.places);
    if (c.failed) return slc_error(SLUICE_ERR_MEMORY, "no memory for the lifetimes of buffers");
    if (program->claim_count) qsort(program->claims, program->claim_count, sizeof *program->claims, by_start);
    for (uint32_t i = 0; i < program->claim_count; i++) {
        const slc_claim *made = &program->claims[i];
        if (made->from == SLC_NONE || made->to == SLC_NONE || made->from > made->to)
            return slc_error(SLUICE_ERR_FORMAT, "%s: its life has no start or end in the order",
                             slc_buffer_kind_name(plan->buffers[made->buffer].kind));
    }
    return SLUICE_OK;
}
