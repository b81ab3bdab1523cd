/* Which buffers a job has under given strategies (the table of strategies in memory), and which are there for good. */
#include "sched/plan_parts.h"

#include "lib/base/status.h"

#include <stdlib.h>

bool slc_gradient_is_transient(slc_strategy strategy)
{
    return strategy == SLC_SDP || strategy == SLC_FSDP;
}

bool slc_needs_reduced(const slc_job *job, const slc_unit *unit, slc_strategy strategy)
{
    return unit->trainable && (job->each || (job->barrier && slc_gradient_is_transient(strategy)));
}

static void add(slc_plan *plan, slc_buffer_kind kind, uint32_t unit, uint32_t index, uint64_t bytes, bool is_static)
{
    uint32_t number = plan->buffer_count++;
    plan->buffers[number] = (slc_buffer){.kind = kind, .unit = unit, .index = index, .bytes = bytes};
    if (is_static) plan->statics[plan->static_count++] = (slc_claim){.buffer = number, .end_byte = bytes};
}

static void add_unit(slc_plan *plan, const slc_job *job, uint32_t u)
{
    const slc_unit *unit = &job->units[u];
    slc_strategy strategy = plan->strategies[u];
    uint64_t whole = 4 * unit->elements, shard = whole / job->world;
    slc_window window;

    if (strategy == SLC_FSDP) {
        add(plan, SLC_BUFFER_VALUE_SHARD, u, 0, shard, true);
        for (uint32_t w = 0; slc_unit_window(job, unit, true, w, &window); w++)
            add(plan, SLC_BUFFER_GATHERED, u, w, whole, false);
    } else {
        add(plan, SLC_BUFFER_VALUE, u, 0, whole, true);
    }
    if (!unit->trainable) return;
    add(plan, SLC_BUFFER_GRADIENT, u, 0, whole, !slc_gradient_is_transient(strategy));
    if (slc_needs_reduced(job, unit, strategy)) add(plan, SLC_BUFFER_REDUCED, u, 0, shard, false);
    for (uint32_t s = 0; s < job->states; s++)
        add(plan, SLC_BUFFER_STATE, u, s, strategy == SLC_DP ? whole : shard, true);
}

static uint64_t largest_block(const slc_job *job)
{
    uint64_t largest = 0;
    for (uint32_t u = 0; u < job->unit_count; u++) {
        const slc_unit *unit = &job->units[u];
        uint64_t block = unit->elements < unit->block_elements ? unit->elements : unit->block_elements;
        if (block > largest) largest = block;
    }
    return 4 * largest;
}

static uint32_t most_buffers(const slc_job *job)
{
    uint32_t count = job->activation_count + job->workspace_count + 3;
    for (uint32_t u = 0; u < job->unit_count; u++) count += 4 + job->states + 2 * job->units[u].use_count;
    return count;
}

sluice_status slc_plan_add_buffers(const slc_job *job, slc_plan *plan)
{
    uint32_t capacity = most_buffers(job);
    plan->buffers = calloc(capacity, sizeof *plan->buffers);
    plan->statics = calloc(capacity, sizeof *plan->statics);
    if (!plan->buffers || !plan->statics) return slc_error(SLUICE_ERR_MEMORY, "no memory for %u buffers", capacity);

    for (uint32_t u = 0; u < job->unit_count; u++) add_unit(plan, job, u);
    for (uint32_t a = 0; a < job->activation_count; a++)
        add(plan, SLC_BUFFER_ACTIVATION, SLC_NONE, a, job->activations[a].bytes, false);
    for (uint32_t w = 0; w < job->workspace_count; w++)
        add(plan, SLC_BUFFER_WORKSPACE, SLC_NONE, w, job->workspaces[w].bytes, false);
    if (job->scratch_bytes) add(plan, SLC_BUFFER_SCRATCH, SLC_NONE, 0, job->scratch_bytes, true);
    add(plan, SLC_BUFFER_AGREEMENT, SLC_NONE, 0, 8 * slc_agreement_words(job->world), true);
    add(plan, SLC_BUFFER_STAGING, SLC_NONE, 0, largest_block(job), false);
    return SLUICE_OK;
}
