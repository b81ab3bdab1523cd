/* Kernels that fail when they are told to. The linker puts the function below in the place of the check that every
 * kernel of the host begins with (--wrap=slc_host_check). */
#ifndef SLC_KERNELS_FAILING_KERNEL_TEST_H
#define SLC_KERNELS_FAILING_KERNEL_TEST_H

#include "lib/kernels/host.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

static const sluice_status planted = SLUICE_ERR_SYSTEM; /* what a kernel fails with that was told to */

static pthread_mutex_t kernel_lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t kernel_calls, kernel_fails_at;
static const char *kernel_failed; /* its name, once one has */

sluice_status __real_slc_host_check(const sluice_stream *stream, const char *kernel);
sluice_status __wrap_slc_host_check(const sluice_stream *stream, const char *kernel);
sluice_status __wrap_slc_host_check(const sluice_stream *stream, const char *kernel)
{
    pthread_mutex_lock(&kernel_lock);
    const bool now = ++kernel_calls == kernel_fails_at;
    if (now) kernel_failed = kernel;
    pthread_mutex_unlock(&kernel_lock);
    return now ? planted : __real_slc_host_check(stream, kernel);
}

/* From now on call number `at` fails, counted from 1 over all threads; 0: none. Returns how many there were since the
 * last time. */
static uint32_t plant(uint32_t at)
{
    pthread_mutex_lock(&kernel_lock);
    const uint32_t before = kernel_calls;
    kernel_calls = 0, kernel_fails_at = at, kernel_failed = NULL;
    pthread_mutex_unlock(&kernel_lock);
    return before;
}

#endif
