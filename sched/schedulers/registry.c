/* The table of all schedulers. */
#include "sched/scheduler.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
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

static char names[256];

static void join_names(void)
{
    size_t used = 0;
    for (size_t i = 0; i < sizeof schedulers / sizeof *schedulers; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", schedulers[i]->name);
    assert(used < sizeof names);
}

const char *slc_scheduler_names(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, join_names);
    return names;
}
