/* Ctrl-C and SIGTERM become a number that training looks at between steps. No handler runs for them: one thread waits
 * for the signals and all others block them. A handler could do harm here: a GEMM that oneDNN 2 may choose lets the
 * stack register point into its buffers for a while, and the kernel would write the handler's frame over the bytes
 * below. SIGPIPE has a handler, because it can only strike in a write. It counts as a first Ctrl-C: the reader of the
 * output is gone (`| head -1`), and the work done so far should be saved. */
#pragma once

#include <signal.h>
#include <sluice/status.h>
#include <stdbool.h>

/* True if the process ignores the signal, as a process that nohup started ignores SIGHUP. A blocked signal reaches
 * sigwait and signalfd even if it is ignored, so code that takes signals that way must leave an ignored one out. */
bool slc_signal_is_ignored(int signal);

/* Call it before any other thread exists. Until slc_stop_signals_count the signals end the process as usual.
 * Errors: SYSTEM. */
sluice_status slc_stop_signals_take(void);

/* Makes the signals only raise *count from now on, which must live until the process ends: a reader that is gone or the
 * first signal sets it to 1, the second signal to 2; the third ends the process. */
void slc_stop_signals_count(volatile sig_atomic_t *count);

/* Reads the count; any thread. */
static inline int slc_stop_signals_seen(const volatile sig_atomic_t *count)
{
    return __atomic_load_n(count, __ATOMIC_RELAXED);
}
