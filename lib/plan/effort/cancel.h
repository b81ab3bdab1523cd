/* An slc_cancel tells long work to end before it is done: planning takes seconds, and its caller may have no more use
 * for the plan. */
#pragma once

#include <sluice/status.h>
#include <stdbool.h>

/* `wanted` is called often, every few milliseconds, from the thread that works; it must be quick. Once true, it stays
 * true. */
typedef struct {
    bool (*wanted)(void *context);
    void *context;
} slc_cancel;

/* Returns true if the work must end; never if `cancel` is NULL. */
static inline bool slc_cancelled(const slc_cancel *cancel)
{
    return cancel && cancel->wanted(cancel->context);
}

/* Returns slc_cancelled as a status. Errors: INTERRUPTED. */
sluice_status slc_cancel_check(const slc_cancel *cancel);
