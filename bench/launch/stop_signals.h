/* Ctrl-C and SIGTERM as a number that training looks at between steps. No handler ever runs: a thread waits for the
 * signals and all others block them. A handler could do harm here: a GEMM of oneDNN 2 that its matmul may choose points
 * the stack register into its buffers for a while, and the kernel would write the handler's frame over what lies below.
 */
#ifndef SLC_BENCH_STOP_SIGNALS_H
#define SLC_BENCH_STOP_SIGNALS_H

#include <signal.h>
#include <sluice/status.h>

/* Call before any other thread exists. Until slc_stop_signals_count the signals end the process as always.
 * Errors: SYSTEM. */
sluice_status slc_stop_signals_take(void);

/* From now on they only add to *count, which lives to the process's end; the third ends the process. */
void slc_stop_signals_count(volatile sig_atomic_t *count);

/* Of the thread that reads it. */
static inline int slc_stop_signals_seen(const volatile sig_atomic_t *count)
{
    return __atomic_load_n(count, __ATOMIC_RELAXED);
}

#endif
