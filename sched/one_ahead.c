/* As PyTorch's FSDP2: the next window is gathered while one computes, a gradient is reduced while the next slot
 * computes; two gathered buffers and two gradients are alive. Updated values of oss and sdp are gathered at the end in
 * the order in which the next forward needs them, and overlap with it. */
#include "sched/scheduler.h"

/* The reductions of the slot before `slot`, one slot late, so that their gradients may stay while the next computes. */
static void late_reductions(const slc_job *job, const slc_strategy *strategies, slc_order *order, uint32_t m,
                            uint32_t slot)
{
    slc_order_reductions_after(order, job, strategies, m, slot);
    for (uint32_t u = job->unit_count; u-- > 0;)
        if (slc_updated_after(job, strategies, u, m, slot)) slc_order_update(order, job, strategies, u);
}

static void train(const slc_scheduling *in, slc_order *order)
{
    const slc_job *job = in->job;
    const slc_strategy *strategies = in->strategies;
    uint32_t slots = slc_job_slots(job), last = job->micro_batches * slots - 1;
    slc_order_gathers_for(order, job, strategies, false, 0, 0);
    for (uint32_t i = 0; i <= last; i++) {
        if (i < last) slc_order_gathers_ahead(order, job, strategies, i, false);
        slc_order_slot(order, i / slots, i % slots);
        if (i < last) slc_order_gathers_ahead(order, job, strategies, i, true);
        if (i) late_reductions(job, strategies, order, (i - 1) / slots, (i - 1) % slots);
    }
    late_reductions(job, strategies, order, last / slots, last % slots);
    slc_order_operation(order, job, SLC_ITEM_AGREE, job->micro_batches - 1, SLC_NONE);
    for (uint32_t u = 0; u < job->unit_count; u++)
        if (slc_updated_at_end(job, strategies, u)) slc_order_update(order, job, strategies, u);
    slc_order_value_gathers(order, job, strategies);
}

static void evaluate(const slc_scheduling *in, slc_order *order)
{
    const slc_job *job = in->job;
    const slc_strategy *strategies = in->strategies;
    slc_order_gathers_for(order, job, strategies, true, 0, 0);
    for (uint32_t slot = 0; slot < job->layer_count; slot++) {
        if (slot + 1 < job->layer_count) slc_order_gathers_for(order, job, strategies, true, 0, slot + 1);
        slc_order_slot(order, 0, slot);
    }
}

const slc_scheduler slc_scheduler_one_ahead = {
    .name = "one_ahead",
    .doc = "gathers one window ahead, reduces one slot behind, as PyTorch FSDP2",
    .train = train,
    .evaluate = evaluate,
};
