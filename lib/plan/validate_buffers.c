/* The validator's view of the buffers: which there must be under a plan's strategies, how large, which for good. */
#include "lib/plan/judge.h"

#include "lib/base/status.h"

#include <stdlib.h>

static bool is_resident(const slc_plan *plan, uint32_t buffer)
{
    uint32_t found = 0;
    for (uint32_t s = 0; s < plan->static_count; s++) {
        const slc_claim *claim = &plan->statics[s];
        if (claim->buffer == buffer && !claim->first_byte && claim->end_byte == plan->buffers[buffer].bytes) found++;
    }
    return found == 1;
}

static sluice_status expect(const slc_plan *plan, slc_buffer_kind kind, uint32_t unit, uint32_t index, uint64_t bytes,
                            bool resident)
{
    uint32_t found = SLC_NONE;
    for (uint32_t b = 0; b < plan->buffer_count; b++) {
        const slc_buffer *buffer = &plan->buffers[b];
        if (buffer->kind != kind || buffer->unit != unit || buffer->index != index) continue;
        if (found != SLC_NONE)
            return slc_error(SLUICE_ERR_FORMAT, "invalid plan: %s %u of unit %u is there twice",
                             slc_buffer_kind_name(kind), index, unit);
        found = b;
    }
    if (found == SLC_NONE || plan->buffers[found].bytes < bytes)
        return slc_error(SLUICE_ERR_FORMAT, "invalid plan: %s %u of unit %u: %llu bytes are needed, the plan has %llu",
                         slc_buffer_kind_name(kind), index, unit, (unsigned long long)bytes,
                         found == SLC_NONE ? 0 : (unsigned long long)plan->buffers[found].bytes);
    if (resident && !is_resident(plan, found))
        return slc_error(SLUICE_ERR_FORMAT, "invalid plan: %s %u of unit %u must be in memory for good",
                         slc_buffer_kind_name(kind), index, unit);
    return SLUICE_OK;
}

static sluice_status expect_unit(const slc_job *job, const slc_plan *plan, uint32_t u)
{
    const slc_unit *unit = &job->units[u];
    slc_strategy k = plan->strategies[u];
    uint64_t whole = 4 * unit->elements, own = whole / job->world;
    bool whole_gradient = k == SLC_DP || k == SLC_OSS;
    sluice_status status = k == SLC_FSDP ? expect(plan, SLC_BUFFER_VALUE_SHARD, u, 0, own, true)
                                         : expect(plan, SLC_BUFFER_VALUE, u, 0, whole, true);
    slc_window window;
    for (uint32_t w = 0; !status && k == SLC_FSDP && slc_unit_window(job, unit, true, w, &window); w++)
        status = expect(plan, SLC_BUFFER_GATHERED, u, w, whole, false);
    if (!status && unit->trainable) status = expect(plan, SLC_BUFFER_GRADIENT, u, 0, whole, whole_gradient);
    bool moved = job->each || slc_plan_buffer(plan, SLC_BUFFER_REDUCED, u, 0) != SLC_NONE;
    if (!status && unit->trainable && moved) status = expect(plan, SLC_BUFFER_REDUCED, u, 0, own, false);
    for (uint32_t s = 0; !status && unit->trainable && s < job->states; s++)
        status = expect(plan, SLC_BUFFER_STATE, u, s, k == SLC_DP ? whole : own, true);
    return status;
}

static sluice_status expect_all(const slc_job *job, const slc_plan *plan)
{
    sluice_status status = expect(plan, SLC_BUFFER_AGREEMENT, SLC_NONE, 0, 8 * slc_agreement_words(job->world), true);
    if (!status && job->scratch_bytes) status = expect(plan, SLC_BUFFER_SCRATCH, SLC_NONE, 0, job->scratch_bytes, true);
    uint64_t block = 0;
    for (uint32_t u = 0; !status && u < job->unit_count; u++) {
        const slc_unit *unit = &job->units[u];
        uint64_t largest = 4 * (unit->elements < unit->block_elements ? unit->elements : unit->block_elements);
        if (largest > block) block = largest;
        status = expect_unit(job, plan, u);
    }
    return status ? status : expect(plan, SLC_BUFFER_STAGING, SLC_NONE, 0, block, false);
}

/* Activations and workspaces come in their thousands: each is looked at once. */
static sluice_status expect_many(const slc_job *job, const slc_plan *plan, slc_buffer_kind kind, uint32_t count)
{
    uint8_t *seen = calloc((size_t)count + 1, 1);
    if (!seen) return slc_error(SLUICE_ERR_MEMORY, "validator");
    uint32_t found = 0;
    sluice_status status = SLUICE_OK;
    for (uint32_t b = 0; !status && b < plan->buffer_count; b++) {
        const slc_buffer *buffer = &plan->buffers[b];
        if (buffer->kind != kind) continue;
        uint64_t bytes = buffer->index >= count          ? 0
                         : kind == SLC_BUFFER_ACTIVATION ? job->activations[buffer->index].bytes
                                                         : job->workspaces[buffer->index].bytes;
        if (buffer->index >= count || seen[buffer->index]++ || buffer->bytes < bytes)
            status = slc_error(SLUICE_ERR_FORMAT, "invalid plan: %s %u is unknown, there twice or too small",
                               slc_buffer_kind_name(kind), buffer->index);
        found++;
    }
    if (!status && found != count)
        status = slc_error(SLUICE_ERR_FORMAT, "invalid plan: %u %ss of %u", found, slc_buffer_kind_name(kind), count);
    free(seen);
    return status;
}

static bool inside_arena(const slc_plan *plan, const slc_buffer *buffer)
{
    return buffer->offset <= plan->arena_bytes && buffer->bytes <= plan->arena_bytes - buffer->offset;
}

static bool apart(const slc_buffer *a, const slc_buffer *b)
{
    return a->offset + a->bytes <= b->offset || b->offset + b->bytes <= a->offset;
}

/* The staging buffer is used between steps: only resident memory may not lie under it. */
static sluice_status check_residents(const slc_plan *plan)
{
    for (uint32_t s = 0; s < plan->static_count; s++)
        if (plan->statics[s].buffer >= plan->buffer_count || !is_resident(plan, plan->statics[s].buffer))
            return slc_error(SLUICE_ERR_FORMAT, "invalid plan: a resident claim that is not of one whole buffer");
    uint32_t staging = slc_plan_buffer(plan, SLC_BUFFER_STAGING, SLC_NONE, 0);
    for (uint32_t s = 0; s <= plan->static_count; s++) {
        const slc_buffer *a = &plan->buffers[s < plan->static_count ? plan->statics[s].buffer : staging];
        if (!inside_arena(plan, a))
            return slc_error(SLUICE_ERR_FORMAT, "invalid plan: %s lies beyond the arena",
                             slc_buffer_kind_name(a->kind));
        for (uint32_t t = 0; t < s; t++) {
            const slc_buffer *b = &plan->buffers[plan->statics[t].buffer];
            if (!apart(a, b))
                return slc_error(SLUICE_ERR_FORMAT, "invalid plan: %s lies over %s", slc_buffer_kind_name(a->kind),
                                 slc_buffer_kind_name(b->kind));
        }
    }
    return SLUICE_OK;
}

sluice_status slc_judge_buffers(const slc_job *job, const slc_plan *plan)
{
    sluice_status status = expect_all(job, plan);
    if (!status) status = expect_many(job, plan, SLC_BUFFER_ACTIVATION, job->activation_count);
    if (!status) status = expect_many(job, plan, SLC_BUFFER_WORKSPACE, job->workspace_count);
    return status ? status : check_residents(plan);
}
