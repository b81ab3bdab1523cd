/* GLPK fails for real, by its own error hook, at any of the calls in which the slot model spends its time: the answer
 * is an error with GLPK's words, everything that was allocated is freed (the address sanitizer looks), the next
 * question is answered as ever, and planning goes on without the model. The linker puts the functions below in GLPK's
 * place
 * (--wrap). */
#include "tests/support/ilp/random_slot_job.h"
#include "ilp/solver/slot_program.h"
#include "lib/base/status.h"
#include "sched/joint/joint.h"
#include "sched/study/random_profile.h"

#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <setjmp.h>
#include <cmocka.h>

static struct {
    int calls, fails_at; /* 0: never */
} solver;

/* An argument that GLPK itself refuses. */
static void count_call(glp_prob *lp)
{
    if (++solver.calls == solver.fails_at) glp_add_rows(lp, -5);
}

int __real_glp_simplex(glp_prob *lp, const glp_smcp *options);
int __wrap_glp_simplex(glp_prob *lp, const glp_smcp *options);
int __wrap_glp_simplex(glp_prob *lp, const glp_smcp *options)
{
    count_call(lp);
    return __real_glp_simplex(lp, options);
}

int __real_glp_intopt(glp_prob *lp, const glp_iocp *options);
int __wrap_glp_intopt(glp_prob *lp, const glp_iocp *options);
int __wrap_glp_intopt(glp_prob *lp, const glp_iocp *options)
{
    count_call(lp);
    return __real_glp_intopt(lp, options);
}

void __real_glp_load_matrix(glp_prob *lp, int count, const int rows[], const int columns[], const double values[]);
void __wrap_glp_load_matrix(glp_prob *lp, int count, const int rows[], const int columns[], const double values[]);
void __wrap_glp_load_matrix(glp_prob *lp, int count, const int rows[], const int columns[], const double values[])
{
    count_call(lp);
    __real_glp_load_matrix(lp, count, rows, columns, values);
}

void __real_glp_set_obj_coef(glp_prob *lp, int column, double coefficient);
void __wrap_glp_set_obj_coef(glp_prob *lp, int column, double coefficient);
void __wrap_glp_set_obj_coef(glp_prob *lp, int column, double coefficient)
{
    if (column <= 1) count_call(lp); /* in the making of a program */
    __real_glp_set_obj_coef(lp, column, coefficient);
}

static void gave_up(sluice_status status)
{
    assert_int_equal(status, SLUICE_ERR_FORMAT);
    assert_non_null(strstr(sluice_last_error(), "GLPK gave up: glp_add_rows: nrs = -5"));
}

static void any_call_may_fail(void **state)
{
    (void)state;
    int failed = 0;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        slot_dice dice = {.seed = seed};
        slot_job t;
        slot_job_draw(&t, &dice, 5, 2, 1);
        slc_slot_request request = {
            .job = &t.job, .times = &t.times, .allowed = t.allowed, .recompute = t.recompute, .gap = 0.003};
        slc_slot_solution light, answer, again;
        uint64_t least, limit;
        solver.fails_at = 0;
        assert_int_equal(slc_slot_model_least_memory(&request, &least, &light), SLUICE_OK);
        slc_slot_solution_fini(&light);
        request.limit = least + least / 20;
        solver.calls = 0;
        assert_int_equal(slc_slot_model_solve(&request, &answer), SLUICE_OK);
        const int calls = solver.calls;
        assert_true(calls > 2);
        for (int k = 1; k <= calls; k++) {
            solver.calls = 0, solver.fails_at = k;
            gave_up(slc_slot_model_solve(&request, &again));
            failed++;
        }
        for (int k = 1; k <= 2; k++) {
            solver.calls = 0, solver.fails_at = k;
            sluice_status status = slc_slot_model_least_memory(&request, &limit, &light);
            if (solver.calls >= k) gave_up(status);
            slc_slot_solution_fini(&light);
        }
        solver.fails_at = 0;
        assert_int_equal(slc_slot_model_solve(&request, &again), SLUICE_OK);
        assert_true(again.found == answer.found && fabs(again.step_s - answer.step_s) <= 1e-12);
        slc_slot_solution_fini(&again);
        slc_slot_solution_fini(&answer);
    }
    assert_true(failed > 30);
}

/* Every plan is valid and within its limit wherever the solver gave up on the way, and says so. */
static void planning_goes_on_without_it(void **state)
{
    (void)state;
    slc_random_options options = slc_random_defaults();
    slc_profile *profile;
    options.layers = (slc_random_range){4, 6};
    options.world = 2;
    assert_int_equal(slc_random_profile(&options, 3, &profile), SLUICE_OK);
    slc_strategy *strategies = calloc(profile->job.unit_count, sizeof *strategies);
    for (uint32_t u = 0; u < profile->job.unit_count; u++) strategies[u] = SLC_STRATEGIES;
    slc_joint_request request = {.job = &profile->job,
                                 .times = &profile->times,
                                 .strategies = strategies,
                                 .limit = UINT64_MAX,
                                 .effort_s = 20,
                                 .tries = 30};
    for (int k = 0; k <= 4; k++) {
        slc_joint_answer answer;
        solver.calls = 0, solver.fails_at = k;
        assert_int_equal(slc_joint_plan(&request, &answer, NULL), SLUICE_OK);
        assert_int_equal(slc_plan_validate(request.job, answer.plan), SLUICE_OK);
        assert_true(answer.plan->arena_bytes <= request.limit);
        assert_int_equal(strstr(answer.note, "GLPK gave up: glp_add_rows") != NULL, k > 0);
        slc_plan_destroy(answer.plan);
    }
    free(strategies);
    slc_profile_destroy(profile);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_call_may_fail),
        cmocka_unit_test(planning_goes_on_without_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
