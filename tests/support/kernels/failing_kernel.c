#include "tests/support/kernels/failing_kernel.h"

#include "lib/kernels/host.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

static pthread_mutex_t kernel_lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t kernel_calls, kernel_fails_at;
static const char *kernel_failed; /* its name, once one has */

sluice_status __real_slc_host_check(const sluice_stream *stream, const char *kernel);
sluice_status __wrap_slc_host_check(const sluice_stream *stream, const char *kernel)
{
    pthread_mutex_lock(&kernel_lock);
    const bool now = ++kernel_calls == kernel_fails_at;
    if (now) kernel_failed = kernel;
    pthread_mutex_unlock(&kernel_lock);
    return now ? planted : __real_slc_host_check(stream, kernel);
}

const char *kernel_that_failed(void)
{
    return kernel_failed;
}

uint32_t plant(uint32_t at)
{
    pthread_mutex_lock(&kernel_lock);
    const uint32_t before = kernel_calls;
    kernel_calls = 0, kernel_fails_at = at, kernel_failed = NULL;
    pthread_mutex_unlock(&kernel_lock);
    return before;
}
