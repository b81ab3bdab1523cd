/* Schedules as PyTorch's FSDP2 does: the next window is gathered while one computes, and a gradient is reduced while
 * the next slot computes; two gathered buffers and two gradients are alive. Updated values of oss and sdp are gathered
 * at the end, in the order in which the next forward needs them, and overlap with that forward.
 * schedulers_test.c covers this file. */
#include "sched/scheduler.h"

static void reduce(const void *context, const slc_scheduling *in, slc_order *order, uint32_t m, uint32_t slot)
{
    (void)context;
    slc_order_reductions_after(order, in->job, in->strategies, m, slot);
    slc_order_updates_after(order, in->job, in->strategies, m, slot);
}

static void train(const slc_scheduling *in, slc_order *order)
{
    slc_order_one_ahead(order, in, reduce, NULL);
    slc_order_updates_at_end(order, in->job, in->strategies);
    slc_order_value_gathers(order, in->job, in->strategies);
}

void slc_evaluate_one_ahead(const slc_scheduling *in, slc_order *order)
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
    .doc = "gathers one window ahead, reduces one slot later, as PyTorch FSDP2",
    .baseline = true,
    .train = train,
    .evaluate = slc_evaluate_one_ahead,
};
