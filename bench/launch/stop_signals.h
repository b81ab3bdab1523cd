/* Ctrl-C and SIGTERM as a number that training looks at between steps. No handler runs for them: a thread waits for the
 * signals and all others block them. A handler could do harm here: a GEMM of oneDNN 2 that its matmul may choose points
 * the stack register into its buffers for a while, and the kernel would write the handler's frame over what lies below.
 * SIGPIPE has a handler, for it strikes in a write alone. It stands for a first Ctrl-C: whoever read the output is gone
 * (`| head -1`), and what was trained is to be saved. */
#ifndef SLC_BENCH_STOP_SIGNALS_H
#define SLC_BENCH_STOP_SIGNALS_H

#include <signal.h>
#include <sluice/status.h>

/* Call before any other thread exists. Until slc_stop_signals_count the signals end the process as always.
 * Errors: SYSTEM. */
sluice_status slc_stop_signals_take(void);

/* From now on they only raise *count, which lives to the process's end: a closed reader or the first signal to 1, the
 * second signal to 2; the third ends the process. */
void slc_stop_signals_count(volatile sig_atomic_t *count);

/* Of the thread that reads it. */
static inline int slc_stop_signals_seen(const volatile sig_atomic_t *count)
{
    return __atomic_load_n(count, __ATOMIC_RELAXED);
}

#endif
