/* A failure is written once. Its status is stored last, so that a thread which sees the status sees the line too. */
#include "lib/comm/failure.h"

#include "lib/base/status.h"

#include <stdarg.h>
#include <stdio.h>

void slc_failure_init(slc_failure *failure)
{
    atomic_init(&failure->status, SLUICE_OK);
    pthread_mutex_init(&failure->lock, NULL);
    failure->tell = SLC_TELL_NOBODY;
    failure->line[0] = '\0';
}

void slc_failure_fini(slc_failure *failure)
{
    pthread_mutex_destroy(&failure->lock);
}

bool slc_failure_set(slc_failure *failure, sluice_status status, slc_tell tell, const char *format, ...)
{
    pthread_mutex_lock(&failure->lock);
    bool first = !slc_failed(failure);
    if (first) {
        va_list args;
        va_start(args, format);
        vsnprintf(failure->line, sizeof failure->line, format, args);
        va_end(args);
        failure->tell = tell;
        atomic_store_explicit(&failure->status, status, memory_order_release);
    }
    pthread_mutex_unlock(&failure->lock);
    return first;
}

void slc_failure_override(slc_failure *failure, sluice_status status, const char *format, ...)
{
    va_list args;
    pthread_mutex_init(&failure->lock, NULL);
    va_start(args, format);
    vsnprintf(failure->line, sizeof failure->line, format, args);
    va_end(args);
    failure->tell = SLC_TELL_NOBODY;
    atomic_store_explicit(&failure->status, status, memory_order_release);
}

sluice_status slc_failure_get(slc_failure *failure)
{
    int status = atomic_load_explicit(&failure->status, memory_order_acquire);
    if (status == SLUICE_OK) return SLUICE_OK;
    return slc_error((sluice_status)status, "%s", failure->line);
}
