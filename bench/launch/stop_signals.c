/* The thread that waits for Ctrl-C. */
#include "bench/launch/stop_signals.h"

#include "lib/base/status.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

enum { PATIENCE = 3 };

static volatile sig_atomic_t *_Atomic counter;

static void *wait_for_signals(void *unused)
{
    (void)unused;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    for (int signal; sigwait(&set, &signal) == 0;) {
        volatile sig_atomic_t *count = atomic_load(&counter);
        if (!count || __atomic_add_fetch(count, 1, __ATOMIC_RELAXED) >= PATIENCE) _exit(128 + signal);
    }
    return NULL;
}

sluice_status slc_stop_signals_take(void)
{
    sigset_t set;
    pthread_t thread;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    int why = pthread_create(&thread, NULL, wait_for_signals, NULL);
    if (why) return slc_error(SLUICE_ERR_SYSTEM, "no thread to wait for signals: %s", strerror(why));
    pthread_detach(thread);
    return SLUICE_OK;
}

void slc_stop_signals_count(volatile sig_atomic_t *count)
{
    atomic_store(&counter, count);
}
