/* The table of all schedulers. schedulers_test.c covers this file. */
#include "sched/scheduler.h"

#include "ilp/slot_model.h"

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
    if (!strcmp(name, slc_scheduler_portfolio.name)) return &slc_scheduler_portfolio;
    for (size_t i = 0; i < sizeof schedulers / sizeof *schedulers; i++)
        if (!strcmp(schedulers[i]->name, name)) return schedulers[i];
    return NULL;
}

bool slc_scheduler_wants_times(const char *name)
{
    const slc_scheduler *found = slc_scheduler_find(name);
    bool offered = found && (found != &slc_scheduler_ilp || slc_slot_model_solver());
    return offered && found->wants_times;
}

const slc_scheduler *slc_scheduler_at(size_t index)
{
    return index < sizeof schedulers / sizeof *schedulers ? schedulers[index] : NULL;
}

static char names[256];

static void add_name(const slc_scheduler *scheduler)
{
    size_t used = strlen(names);
    used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "", scheduler->name);
    assert(used < sizeof names);
}

/* The schedulers that choose strategies too come first: the first one is the default. */
static void join_names(void)
{
    if (slc_slot_model_solver()) add_name(&slc_scheduler_ilp);
    add_name(&slc_scheduler_portfolio);
    for (size_t i = 0; i < sizeof schedulers / sizeof *schedulers; i++)
        if (!slc_scheduler_is_joint(schedulers[i])) add_name(schedulers[i]);
}

const char *slc_scheduler_names(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, join_names);
    return names;
}

bool slc_scheduler_is_joint(const slc_scheduler *scheduler)
{
    return scheduler == &slc_scheduler_ilp || scheduler == &slc_scheduler_portfolio;
}
