/* The schedulers there are. */
#include "sched/scheduler.h"

#include "ilp/slot_model.h"

#include <string.h>

static const slc_scheduler *const schedulers[] = {
    &slc_scheduler_serial, &slc_scheduler_one_ahead, &slc_scheduler_bucketed, &slc_scheduler_priority,
    &slc_scheduler_greedy, &slc_scheduler_ilp,       &slc_scheduler_random,
};

const slc_scheduler *slc_scheduler_find(const char *name)
{
    if (!strcmp(name, slc_scheduler_portfolio.name)) return &slc_scheduler_portfolio;
    for (size_t i = 0; i < sizeof schedulers / sizeof *schedulers; i++)
        if (!strcmp(schedulers[i]->name, name)) return schedulers[i];
    return NULL;
}

const slc_scheduler *slc_scheduler_at(size_t index)
{
    return index < sizeof schedulers / sizeof *schedulers ? schedulers[index] : NULL;
}

const char *slc_scheduler_names(void)
{
    static const char names[] = "ilp, portfolio, serial, one_ahead, bucketed, priority, greedy, random";
    return slc_slot_model_solver() ? names : names + strlen("ilp, ");
}

bool slc_scheduler_is_joint(const slc_scheduler *scheduler)
{
    return scheduler == &slc_scheduler_ilp || scheduler == &slc_scheduler_portfolio;
}
