/* The table of all schedulers. */
#include "sched/scheduler.h"

#include <string.h>

static const slc_scheduler *const schedulers[] = {
    &slc_scheduler_serial, &slc_scheduler_one_ahead, &slc_scheduler_bucketed, &slc_scheduler_priority,
    &slc_scheduler_greedy, &slc_scheduler_ilp,       &slc_scheduler_random,
};

const slc_scheduler *slc_scheduler_find(const char *name)
{
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
    return "ilp, serial, one_ahead, bucketed, priority, greedy, random";
}
