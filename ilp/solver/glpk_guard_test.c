/* A failure of GLPK in our hands is an error with its words, and nobody else's: the problems, hooks and terminal switch
 * of the program that we are linked into are as they were. */
#include "ilp/solver/slot_program.h"

#include "lib/base/status.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <setjmp.h>
#include <cmocka.h>

/* ---- A program that uses GLPK itself ---- */

typedef struct {
    glp_prob *lp;
    int heard; /* by its terminal hook */
    int said;
} host;

static int host_hears(void *context, const char *text)
{
    host *h = context;
    h->heard += *text != 0;
    return 1;
}

/* max x + 2 y, x + y <= 4, y <= 3. */
static void host_begin(host *h)
{
    static const int columns[] = {0, 1, 2};
    static const double values[] = {0, 1, 1};
    *h = (host){.lp = glp_create_prob()};
    glp_term_hook(host_hears, h);
    glp_set_obj_dir(h->lp, GLP_MAX);
    glp_add_rows(h->lp, 1);
    glp_set_row_bnds(h->lp, 1, GLP_UP, 0, 4);
    glp_add_cols(h->lp, 2);
    for (int j = 1; j <= 2; j++) {
        glp_set_col_bnds(h->lp, j, GLP_DB, 0, 3);
        glp_set_obj_coef(h->lp, j, j);
    }
    glp_set_mat_row(h->lp, 1, 2, columns, values);
}

/* Fails unless the host program's problem is whole, its hook hears what GLPK says, and its terminal is on. */
static void host_is_well(host *h)
{
    glp_smcp simplex;
    glp_init_smcp(&simplex);
    const int heard = h->heard;
    assert_int_equal(glp_get_num_cols(h->lp), 2);
    glp_std_basis(h->lp);
    assert_int_equal(glp_simplex(h->lp, &simplex), 0);
    assert_float_equal(glp_get_obj_val(h->lp), 7, 1e-9);
    assert_true(h->heard > heard);
    assert_int_equal(glp_term_out(GLP_ON), GLP_ON);
}

static void host_end(host *h)
{
    glp_delete_prob(h->lp);
    glp_term_hook(NULL, NULL);
    glp_free_env();
}

/* ---- What is run ---- */

typedef struct {
    glp_prob *made;
    bool fails, came_back;
    sluice_status status;
} errand;

static sluice_status use_solver(void *context)
{
    errand *e = context;
    e->made = glp_create_prob();
    glp_add_rows(e->made, e->fails ? -5 : 5); /* GLPK's own error, through its hook */
    e->came_back = true;
    return e->status ? slc_error(e->status, "no memory for this") : SLUICE_OK;
}

static void a_failure_is_an_error_with_its_words(void **state)
{
    (void)state;
    for (int i = 0; i < 50; i++) {
        errand e = {.fails = true};
        assert_int_equal(slc_glpk_run(use_solver, &e, NULL), SLUICE_ERR_FORMAT);
        assert_true(e.made && !e.came_back);
        const char *why = "GLPK gave up: glp_add_rows: nrs = -5; invalid number of rows";
        if (!strstr(sluice_last_error(), why)) fail_msg("%s", sluice_last_error());
    }
}

static void what_is_run_has_its_own_errors(void **state)
{
    (void)state;
    errand e = {.status = SLUICE_ERR_MEMORY};
    assert_int_equal(slc_glpk_run(use_solver, &e, NULL), SLUICE_ERR_MEMORY);
    assert_string_equal(sluice_last_error(), "no memory for this");
    e.status = SLUICE_OK;
    assert_int_equal(slc_glpk_run(use_solver, &e, NULL), SLUICE_OK);
    assert_true(e.came_back);
}

static void a_host_program_keeps_its_own(void **state)
{
    (void)state;
    host h;
    host_begin(&h);
    host_is_well(&h);
    for (int i = 0; i < 6; i++) {
        errand e = {.fails = i % 2};
        slc_glpk_run(use_solver, &e, NULL);
        host_is_well(&h);
    }
    host_end(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failure_is_an_error_with_its_words),
        cmocka_unit_test(what_is_run_has_its_own_errors),
        cmocka_unit_test(a_host_program_keeps_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
