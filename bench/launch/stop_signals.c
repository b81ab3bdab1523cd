/* A thread waits for Ctrl-C and its like; only SIGPIPE has a handler. tests/launch/run_test.sh covers this file. */
#include "bench/launch/stop_signals.h"

#include "lib/base/status.h"
#include "lib/base/host/thread_limit.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

enum { PATIENCE = 3 };

static volatile sig_atomic_t *_Atomic counter;

/* Returns whether this was the first stop. */
static bool count_first(volatile sig_atomic_t *count)
{
    sig_atomic_t none = 0;
    return __atomic_compare_exchange_n(count, &none, 1, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

bool slc_signal_is_ignored(int signal)
{
    struct sigaction now;
    return !sigaction(signal, NULL, &now) && now.sa_handler == SIG_IGN;
}

static sigset_t taken; /* set before the thread begins */

static void *wait_for_signals(void *unused)
{
    (void)unused;
    const sigset_t set = taken;
    int seen = 0;
    for (int signal; sigwait(&set, &signal) == 0;) {
        volatile sig_atomic_t *count = atomic_load(&counter);
        if (!count || ++seen >= PATIENCE) _exit(128 + signal);
        if (seen == 1)
            count_first(count); /* Ctrl-C also ends `| tee`: both together are one stop, in either order */
        else
            __atomic_store_n(count, seen, __ATOMIC_RELAXED);
    }
    return NULL;
}

static void take_closed_reader(int signal)
{
    static const char line[] = "sluice: nobody reads the output any more: stopping, as after Ctrl-C\n";
    int before = errno;
    volatile sig_atomic_t *count = atomic_load(&counter);
    if (!count) _exit(128 + signal);
    if (count_first(count)) {
        ssize_t written = write(STDERR_FILENO, line, sizeof line - 1);
        (void)written;
    }
    errno = before;
}

sluice_status slc_stop_signals_take(void)
{
    pthread_t thread;
    const struct sigaction closed = {.sa_handler = take_closed_reader, .sa_flags = SA_RESTART};
    sigemptyset(&taken);
    sigaddset(&taken, SIGINT);
    sigaddset(&taken, SIGTERM);
    if (!slc_signal_is_ignored(SIGHUP)) sigaddset(&taken, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &taken, NULL);
    int why = pthread_create(&thread, NULL, wait_for_signals, NULL);
    if (why) return slc_thread_limit_error(why, "no thread to wait for signals");
    pthread_detach(thread);
    if (sigaction(SIGPIPE, &closed, NULL)) return slc_error(SLUICE_ERR_SYSTEM, "SIGPIPE: %s", strerror(errno));
    return SLUICE_OK;
}

void slc_stop_signals_count(volatile sig_atomic_t *count)
{
    atomic_store(&counter, count);
}
