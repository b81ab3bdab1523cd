/* The schedule serial overlaps nothing: every slot waits for every operation before it, every operation for every slot
 * before it. A trainer without a scheduler works like this, and no schedule needs less memory. schedulers_test.c covers
 * this file. */
#include "lib/plan/strategy_table.h"
#include "sched/scheduler.h"

static void update_and_gather(const slc_job *job, const slc_strategy *strategies, slc_order *order, uint32_t unit)
{
    if (unit == SLC_NONE) return;
    slc_order_update(order, job, strategies, unit);
    if (slc_operations_of(job, &job->units[unit], strategies[unit]).gather_value != SLC_ITEM_KINDS)
        slc_order_operation(order, job, SLC_ITEM_GATHER_VALUE, job->micro_batches - 1, unit);
}

static void train(const slc_scheduling *in, slc_order *order)
{
    const slc_job *job = in->job;
    const slc_strategy *strategies = in->strategies;
    for (uint32_t m = 0; m < job->micro_batches; m++)
        for (uint32_t slot = 0; slot < slc_job_slots(job); slot++) {
            slc_order_gathers_for(order, job, strategies, false, m, slot);
            slc_order_slot(order, m, slot);
            slc_order_reductions_after(order, job, strategies, m, slot);
            uint32_t count;
            const uint32_t *users = slc_order_users(order, job, slc_slot_layer(job, slot), &count);
            while (m + 1 == job->micro_batches && count-- > 0)
                if (slc_reduced_after(job, &job->units[users[count]], m, slot))
                    update_and_gather(job, strategies, order, slc_updated_after(job, strategies, users[count]));
        }
    slc_order_operation(order, job, SLC_ITEM_AGREE, job->micro_batches - 1, SLC_NONE);
    for (uint32_t u = 0; u < job->unit_count; u++)
        if (job->units[u].trainable && slc_waits_for_agreement(job, strategies[u]))
            update_and_gather(job, strategies, order, u);
}

static void evaluate(const slc_scheduling *in, slc_order *order)
{
    const slc_job *job = in->job;
    const slc_strategy *strategies = in->strategies;
    for (uint32_t slot = 0; slot < job->layer_count; slot++) {
        slc_order_gathers_for(order, job, strategies, true, 0, slot);
        slc_order_slot(order, 0, slot);
    }
}

const slc_scheduler slc_scheduler_serial = {
    .name = "serial",
    .doc = "no overlap of compute and communication; least memory",
    .slots_wait_for_all = true,
    .baseline = true,
    .train = train,
    .evaluate = evaluate,
};
