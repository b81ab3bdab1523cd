/* The slot model as a scheduler: the model's order for given strategies. If the model has no answer (the solver failed,
 * or the limit is too small for it), the order is that of `serial`, which needs the least memory.
 * schedulers_test.c covers this file. */
#include "ilp/slot_model.h"
#include "lib/plan/times.h"
#include "sched/scheduler.h"
#include "sched/schedulers/slot_order.h"

#include <stdlib.h>

static bool solve(const slc_scheduling *in, const slc_times *times, slc_slot_solution *solution)
{
    uint8_t *allowed = malloc((size_t)in->job->unit_count + 1);
    uint8_t *recompute = calloc((size_t)in->job->layer_count + 1, 1);
    for (uint32_t u = 0; allowed && u < in->job->unit_count; u++) allowed[u] = (uint8_t)(1 << in->strategies[u]);
    for (uint32_t l = 0; recompute && in->recompute && l < in->job->layer_count; l++) recompute[l] = in->recompute[l];
    slc_slot_request ask = {.job = in->job,
                            .times = times,
                            .allowed = allowed,
                            .recompute = recompute,
                            .limit = in->limit,
                            .effort_s = 5,
                            .work = in->work,
                            .gap = 0.003,
                            .cancel = in->cancel};
    bool found = allowed && recompute && !slc_slot_model_solve(&ask, solution) && solution->found;
    free(allowed);
    free(recompute);
    return found;
}

static void train(const slc_scheduling *in, slc_order *order)
{
    slc_slot_solution solution = {0};
    slc_times estimated = {0};
    const slc_times *times = in->times;
    if (!times && !slc_times_estimate(in->job, &estimated)) times = &estimated;
    slc_scheduling with_times = *in;
    with_times.times = times;
    slc_slot_order_options options = {.most_runs = 16, .update_delay = times && times->link.thread_moves ? 0 : 2};
    if (times && solve(&with_times, times, &solution))
        slc_order_from_slots(&with_times, &solution, &options, order);
    else
        slc_scheduler_serial.train(in, order);
    slc_slot_solution_fini(&solution);
    slc_times_fini(&estimated);
}

const slc_scheduler slc_scheduler_ilp = {
    .name = "ilp",
    .doc = "the slot model's schedule, overlapped block by block; with free strategies the joint plan",
    .wants_times = true,
    .train = train,
    .evaluate = slc_evaluate_within,
};
