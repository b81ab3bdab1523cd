/* How long work is told to end before it is done. Planning takes seconds; who asked for it may have no use for the
 * answer any more. */
#pragma once

#include <sluice/status.h>
#include <stdbool.h>

/* `wanted` is called often, every few milliseconds, from the thread that works; it must be quick. Once true, it stays
 * true. */
typedef struct {
    bool (*wanted)(void *context);
    void *context;
} slc_cancel;

/* Shall the work end? `cancel` NULL: never. */
static inline bool slc_cancelled(const slc_cancel *cancel)
{
    return cancel && cancel->wanted(cancel->context);
}

/* The same as a status. Errors: INTERRUPTED. */
sluice_status slc_cancel_check(const slc_cancel *cancel);
