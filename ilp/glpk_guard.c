/* Calls GLPK within a guard. GLPK prints, and a fault of its own would abort the process. Here its messages are caught,
 * and its error hook jumps back out, after which its environment (one a thread) is freed as its manual requires. */
#include "ilp/slot_program.h"

#include "lib/base/status.h"

#include <setjmp.h>
#include <string.h>

typedef struct {
    jmp_buf out;
    char words[200];
} guard;

static int hear(void *context, const char *text)
{
    guard *g = context;
    size_t length = strcspn(text, "\n");
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

sluice_status slc_glpk_run(sluice_status (*run)(void *), void *context, bool *failed)
{
    guard g = {.words = ""};
    *failed = false;
    glp_term_out(GLP_OFF);
    glp_term_hook(hear, &g);
    glp_error_hook(leave, &g);
    if (setjmp(g.out)) {
        glp_free_env();
        *failed = true;
        return slc_error(SLUICE_ERR_FORMAT, "slot model: GLPK gave up: %s", g.words);
    }
    sluice_status status = run(context);
    glp_error_hook(NULL, NULL);
    glp_term_hook(NULL, NULL);
    return status;
}
