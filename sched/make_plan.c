/* From an order to a plan: buffers, lifetimes, packing, tickets. The steps stand in slc_plan_make. */
#include "sched/plan_parts.h"
#include "sched/scheduler.h"

#include "lib/base/status.h"
#include "lib/memory/pack.h"

#include <stdlib.h>
#include <string.h>

static sluice_status make_program(const slc_job *job, const slc_strategy *strategies, const slc_scheduler *scheduler,
                                  bool evaluate, slc_program *program)
{
    slc_order order = {0};
    (evaluate ? scheduler->evaluate : scheduler->train)(job, strategies, &order);
    if (order.failed) {
        free(order.items);
        return slc_error(SLUICE_ERR_MEMORY, "plan: no memory for the order of operations");
    }
    program->items = order.items;
    program->item_count = order.count;
    return SLUICE_OK;
}

static uint32_t count_parts(const slc_plan *plan)
{
    return plan->static_count * 1 + plan->train.claim_count + plan->evaluate.claim_count + 1;
}

/* One time axis: the items of a step, those of an evaluation pass, and one moment of reading between steps. */
static uint32_t collect_parts(const slc_plan *plan, uint32_t buffer, slc_pack_part *parts)
{
    uint32_t count = 0, train = plan->train.item_count, end = train + plan->evaluate.item_count + 1;
    for (uint32_t i = 0; i < plan->static_count; i++)
        if (plan->statics[i].buffer == buffer)
            parts[count++] = (slc_pack_part){plan->statics[i].first_byte, plan->statics[i].end_byte, 0, end};
    for (uint32_t i = 0; i < plan->train.claim_count; i++) {
        const slc_claim *claim = &plan->train.claims[i];
        if (claim->buffer == buffer)
            parts[count++] = (slc_pack_part){claim->first_byte, claim->end_byte, claim->from, claim->to + 1};
    }
    for (uint32_t i = 0; i < plan->evaluate.claim_count; i++) {
        const slc_claim *claim = &plan->evaluate.claims[i];
        if (claim->buffer == buffer)
            parts[count++] =
                (slc_pack_part){claim->first_byte, claim->end_byte, train + claim->from, train + claim->to + 1};
    }
    if (plan->buffers[buffer].kind == SLC_BUFFER_STAGING)
        parts[count++] = (slc_pack_part){0, plan->buffers[buffer].bytes, end - 1, end};
    return count;
}

static sluice_status pack(slc_plan *plan)
{
    sluice_status status = SLUICE_ERR_MEMORY;
    slc_pack_buffer *buffers = calloc(plan->buffer_count, sizeof *buffers);
    slc_pack_part *parts = calloc(count_parts(plan), sizeof *parts);
    if (!buffers || !parts) goto out;

    uint32_t used = 0;
    for (uint32_t b = 0; b < plan->buffer_count; b++) {
        uint32_t count = collect_parts(plan, b, parts + used);
        buffers[b] = (slc_pack_buffer){.bytes = plan->buffers[b].bytes, .parts = parts + used, .part_count = count};
        used += count;
    }
    status = slc_pack(buffers, plan->buffer_count, &plan->arena_bytes);
    if (!status) status = slc_pack_check(buffers, plan->buffer_count);
    if (status) goto out;
    for (uint32_t b = 0; b < plan->buffer_count; b++) plan->buffers[b].offset = buffers[b].offset;
    plan->lower_bound = slc_pack_lower_bound(buffers, plan->buffer_count);

out:
    free(parts);
    free(buffers);
    return status == SLUICE_ERR_MEMORY ? slc_error(status, "plan: no memory for packing") : status;
}

sluice_status slc_plan_make(const slc_job *job, const slc_strategy *strategies, const slc_scheduler *scheduler,
                            slc_plan **out)
{
    slc_plan *plan = calloc(1, sizeof *plan);
    if (!plan) return slc_error(SLUICE_ERR_MEMORY, "plan");
    plan->schedule = scheduler->name;
    plan->unit_count = job->unit_count;
    plan->strategies = malloc((job->unit_count + 1) * sizeof *plan->strategies);
    sluice_status status = SLUICE_ERR_MEMORY;
    if (!plan->strategies) goto fail;
    memcpy(plan->strategies, strategies, job->unit_count * sizeof *strategies);

    status = make_program(job, strategies, scheduler, false, &plan->train);
    if (!status) status = make_program(job, strategies, scheduler, true, &plan->evaluate);
    if (!status) status = slc_plan_add_buffers(job, plan);
    if (!status) status = slc_plan_add_claims(job, plan, false);
    if (!status) status = slc_plan_add_claims(job, plan, true);
    if (!status) status = pack(plan);
    if (!status) status = slc_plan_add_waits(job, plan, scheduler->slots_wait_for_all, false);
    if (!status) status = slc_plan_add_waits(job, plan, scheduler->slots_wait_for_all, true);
    if (!status) status = slc_plan_validate(job, plan);
    if (status) goto fail;
    *out = plan;
    return SLUICE_OK;

fail:
    slc_plan_destroy(plan);
    return slc_error_context(status, "plan");
}
