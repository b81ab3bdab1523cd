/* Calls GLPK within a guard. GLPK prints, and a fault of its own would abort the process. Here its messages are caught,
 * and its error hook jumps back out, after which its environment has to be freed, as its manual requires. That
 * environment (all problems, hooks, the terminal switch) belongs to a thread, and the program that uses this library
 * may use GLPK too; so each run has a thread of its own, and with it an environment that nobody else sees. GLPK's
 * simplex method can be stopped only by such a jump: while it reports its progress, the hook that receives the report
 * asks whether the work is still wanted. */
#include "ilp/solver/slot_program.h"

#include "lib/base/error_line.h"
#include "lib/base/numbers/floats.h"
#include "lib/base/status.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

/* A guard lies on the caller's stack, so it keeps what was written before a jump. */
typedef struct {
    sluice_status (*run)(void *);
    void *context;
    sluice_status status;
    jmp_buf out;
    char words[200], line[SLC_ERROR_BYTES]; /* the solver's last; this thread's error line */
    const slc_cancel *cancel;
    bool cancelled;
} guard;

static int hear(void *context, const char *text)
{
    guard *g = context;
    g->cancelled = slc_cancelled(g->cancel);
    if (g->cancelled) longjmp(g->out, 1);
    size_t length = strcspn(text, "\n");
    if (*g->words && !strncmp(text, "Error detected in file", 22))
        return 1; /* which of GLPK's; the words came before */
    if (length >= sizeof g->words) length = sizeof g->words - 1;
    if (length) {
        memcpy(g->words, text, length);
        g->words[length] = 0;
    }
    return 1; /* prints nothing */
}

static void leave(void *context)
{
    guard *g = context;
    longjmp(g->out, 1);
}

static void *run_guarded(void *context)
{
    SLC_HOLD_FLOATS;
    guard *g = context;
    glp_term_out(g->cancel ? GLP_ON : GLP_OFF);
    glp_term_hook(hear, g);
    glp_error_hook(leave, g);
    if (setjmp(g->out))
        g->status = g->cancelled ? slc_cancel_check(g->cancel)
                                 : slc_error(SLUICE_ERR_FORMAT, "slot model: GLPK gave up: %s", g->words);
    else
        g->status = g->run(g->context);
    glp_free_env();
    if (g->status) snprintf(g->line, sizeof g->line, "%s", sluice_last_error());
    return NULL;
}

sluice_status slc_glpk_run(sluice_status (*run)(void *), void *context, const slc_cancel *cancel)
{
    if (!glp_config("TLS"))
        return slc_error(SLUICE_ERR_UNSUPPORTED,
                         "slot model: this GLPK was built without thread-local storage, so a failure of it would take "
                         "the program's own problems along; install one that has it");
    guard g = {.run = run, .context = context, .cancel = cancel};
    pthread_t thread;
    sigset_t all, before;
    sigfillset(&all); /* signals belong to the program's own threads */
    pthread_sigmask(SIG_BLOCK, &all, &before);
    int error = pthread_create(&thread, NULL, run_guarded, &g);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error) return slc_error(SLUICE_ERR_SYSTEM, "slot model: no thread for GLPK: %s", strerror(error));
    pthread_join(thread, NULL);
    return g.status ? slc_error(g.status, "%s", g.line) : SLUICE_OK;
}
