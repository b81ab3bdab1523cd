/* The joint plan without the slot model, under a name of its own: strategies and schedule are still chosen together,
 * but only from uniform strategies, the mixtures of `mixed` and choices that grow (sched/joint/members.c). If a caller
 * wants one order and no plan, it is that of greedy. schedulers_test.c covers this file. */
#include "sched/scheduler.h"

static void train(const slc_scheduling *in, slc_order *order)
{
    slc_scheduler_greedy.train(in, order);
}

static void evaluate(const slc_scheduling *in, slc_order *order)
{
    slc_scheduler_greedy.evaluate(in, order);
}

const slc_scheduler slc_scheduler_portfolio = {
    .name = "portfolio",
    .doc = "the best of all other schedules, searched; with free strategies the joint plan without an integer program",
    .wants_times = true,
    .train = train,
    .evaluate = evaluate,
};
