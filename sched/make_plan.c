/* From an order to a plan: buffers, lifetimes, packing, tickets. The steps stand in slc_plan_make. */
#include "sched/plan_parts.h"
#include "sched/scheduler.h"

#include "lib/base/status.h"

#include <stdlib.h>
#include <string.h>

static sluice_status make_program(const slc_job *job, const slc_strategy *strategies, const slc_scheduler *scheduler,
                                  bool evaluate, slc_program *program)
{
    slc_order order = {0};
    (evaluate ? scheduler->evaluate : scheduler->train)(job, strategies, &order);
    if (order.failed) {
        free(order.items);
        return slc_error(SLUICE_ERR_MEMORY, "no memory for the order of operations");
    }
    program->items = order.items;
    program->item_count = order.count;
    return SLUICE_OK;
}

/* A plan without waits: enough to know its size. */
static sluice_status lay_out(const slc_job *job, const slc_strategy *strategies, const slc_scheduler *scheduler,
                             uint64_t limit, slc_plan *plan)
{
    plan->schedule = scheduler->name;
    plan->unit_count = job->unit_count;
    plan->strategies = malloc(((size_t)job->unit_count + 1) * sizeof *plan->strategies);
    if (!plan->strategies) return slc_error(SLUICE_ERR_MEMORY, "no memory for %u strategies", job->unit_count);
    memcpy(plan->strategies, strategies, job->unit_count * sizeof *strategies);

    sluice_status status = make_program(job, strategies, scheduler, false, &plan->train);
    if (!status) status = make_program(job, strategies, scheduler, true, &plan->evaluate);
    if (!status) status = slc_plan_add_buffers(job, plan);
    if (!status) status = slc_plan_add_claims(job, plan, false);
    if (!status) status = slc_plan_add_claims(job, plan, true);
    if (!status) status = slc_plan_pack(plan, limit);
    return status;
}

sluice_status slc_plan_make(const slc_job *job, const slc_strategy *strategies, const slc_scheduler *scheduler,
                            slc_plan **out)
{
    slc_plan *plan = calloc(1, sizeof *plan);
    if (!plan) return slc_error(SLUICE_ERR_MEMORY, "plan");
    sluice_status status = lay_out(job, strategies, scheduler, UINT64_MAX, plan);
    if (!status) status = slc_plan_add_waits(job, plan, scheduler->slots_wait_for_all, false);
    if (!status) status = slc_plan_add_waits(job, plan, scheduler->slots_wait_for_all, true);
    if (!status) status = slc_plan_validate(job, plan);
    if (status) {
        slc_plan_destroy(plan);
        return slc_error_context(status, "plan");
    }
    *out = plan;
    return SLUICE_OK;
}

sluice_status slc_plan_measure(const slc_job *job, const slc_strategy *strategies, const slc_scheduler *scheduler,
                               uint64_t limit, uint64_t *arena_bytes)
{
    slc_plan *plan = calloc(1, sizeof *plan);
    if (!plan) return slc_error(SLUICE_ERR_MEMORY, "plan");
    sluice_status status = lay_out(job, strategies, scheduler, limit, plan);
    *arena_bytes = plan->arena_bytes;
    slc_plan_destroy(plan);
    return slc_error_context(status, "plan");
}
