/* GLPK behind a guard. It prints, and on a fault of its own it would abort the process: its words are caught here, and
 * its error hook jumps back out, after which its environment (one per thread) is freed as its manual asks. Its simplex
 * method can be stopped in no other way than by that either: while it reports its progress, the hook that hears it asks
 * whether the work is still wanted. */
#include "ilp/slot_program.h"

#include "lib/base/status.h"

#include <setjmp.h>
#include <string.h>

typedef struct {
    jmp_buf out;
    const slc_cancel *cancel;
    bool cancelled;
    char words[200];
} guard;

static int hear(void *context, const char *text)
{
    guard *g = context;
    g->cancelled = slc_cancelled(g->cancel);
    if (g->cancelled) longjmp(g->out, 1);
    size_t length = strcspn(text, "\n");
    if (length >= sizeof g->words) length = sizeof g->words - 1;
    if (length) {
        memcpy(g->words, text, length);
        g->words[length] = 0;
    }
    return 1; /* and print nothing */
}

static void leave(void *context)
{
    guard *g = context;
    longjmp(g->out, 1);
}

sluice_status slc_glpk_run(sluice_status (*run)(void *), void *context, const slc_cancel *cancel, bool *failed)
{
    guard g = {.cancel = cancel, .words = ""};
    *failed = false;
    glp_term_out(cancel ? GLP_ON : GLP_OFF);
    glp_term_hook(hear, &g);
    glp_error_hook(leave, &g);
    if (setjmp(g.out)) {
        glp_free_env();
        *failed = true;
        if (g.cancelled) return slc_cancel_check(cancel);
        return slc_error(SLUICE_ERR_FORMAT, "slot model: GLPK gave up: %s", g.words);
    }
    sluice_status status = run(context);
    glp_error_hook(NULL, NULL);
    glp_term_hook(NULL, NULL);
    glp_term_out(GLP_OFF);
    return status;
}
