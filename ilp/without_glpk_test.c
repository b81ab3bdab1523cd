/* A build without GLPK names no solver and refuses what needs one, in words that say how to get it. Most builds have
 * GLPK, so the file is compiled here under other names. */
#define slc_slot_model_solver without_glpk_solver
#define slc_slot_model_solve without_glpk_solve
#define slc_slot_model_bound without_glpk_bound
#define slc_slot_model_least_memory without_glpk_least_memory
#include "ilp/without_glpk.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

static void refused(sluice_status status)
{
    assert_int_equal(status, SLUICE_ERR_UNSUPPORTED);
    assert_non_null(strstr(sluice_last_error(), "no GLPK"));
}

static void everything_is_refused(void **state)
{
    (void)state;
    const slc_slot_request request = {0};
    slc_slot_solution solution;
    double relaxed_s, bound_s;
    uint64_t limit = 1;
    assert_null(slc_slot_model_solver());
    memset(&solution, 0xff, sizeof solution);
    refused(slc_slot_model_solve(&request, &solution));
    slc_slot_solution_fini(&solution); /* it may be ended like any other */
    refused(slc_slot_model_bound(&request, &relaxed_s, &bound_s));
    assert_true(relaxed_s == 0 && bound_s == 0);
    memset(&solution, 0xff, sizeof solution);
    refused(slc_slot_model_least_memory(&request, &limit, &solution));
    slc_slot_solution_fini(&solution);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(everything_is_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
