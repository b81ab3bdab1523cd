/* The first failure of a world: its status and its line are kept for every later call. */
#pragma once

#include "lib/base/error_line.h"

#include <sluice/status.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

typedef enum {
    SLC_TELL_NOBODY, /* another rank told it to this one */
    SLC_TELL_FACT,   /* the line holds for every rank as it is: "rank 2 died" */
    SLC_TELL_OWN     /* it is this rank's trouble: the others hear "rank 1 failed: ..." */
} slc_tell;

typedef struct {
    _Atomic int status; /* SLUICE_OK while healthy; written once, after the rest */
    pthread_mutex_t lock;
    slc_tell tell;
    char line[SLC_ERROR_BYTES];
} slc_failure;

void slc_failure_init(slc_failure *failure);
void slc_failure_fini(slc_failure *failure);

/* Keeps the failure if it is the first, and returns whether it was. Any thread. */
bool slc_failure_set(slc_failure *failure, sluice_status status, slc_tell tell, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Replaces any failure that there is. For a forked child, which has one thread: a thread that it lacks may hold the
 * lock for ever. */
void slc_failure_override(slc_failure *failure, sluice_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* SLUICE_OK, or the failure, whose line becomes the calling thread's error line. Any thread. */
sluice_status slc_failure_get(slc_failure *failure);

static inline bool slc_failed(const slc_failure *failure)
{
    return atomic_load_explicit(&failure->status, memory_order_acquire) != SLUICE_OK;
}
