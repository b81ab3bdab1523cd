/* Planning does not fail when the solver does: it gives a valid plan within the limit, no slower than any baseline,
 * with a note that `sluice plan` prints. The linker puts the function below in the place of the slot model's
 * (--wrap). */
#include "bench/cli/command.h"
#include "ilp/slot_model.h"
#include "lib/base/status.h"
#include "sched/joint/joint.h"
#include "sched/simulate/simulate.h"
#include "sched/study/random_profile.h"
#include "sched/layout/make_plan.h"
#include "tests/support/scale.h"
#include "tests/support/seed.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SEEDS = 4 };

static struct {
    sluice_status status; /* OK: no error, but the solver finds nothing in its time */
    unsigned calls;
} solver;

sluice_status __wrap_slc_slot_model_solve(const slc_slot_request *request, slc_slot_solution *out);
sluice_status __wrap_slc_slot_model_solve(const slc_slot_request *request, slc_slot_solution *out)
{
    (void)request;
    *out = (slc_slot_solution){.how = "none"};
    solver.calls++;
    return solver.status ? slc_error(solver.status, "slot model: the basis is gone") : SLUICE_OK;
}

static slc_profile *draw(uint64_t seed)
{
    slc_random_options options = slc_random_defaults();
    slc_profile *profile;
    options.layers = (slc_random_range){4, 8};
    options.can_recompute = seed % 2;
    options.world = 2 + seed % 3;
    assert_int_equal(slc_random_profile(&options, test_seed(seed), &profile), SLUICE_OK);
    return profile;
}

/* Returns the step time of the fastest plan with one strategy for all units, under any other schedule, that keeps to
 * the limit; 0: none does. *least becomes the memory of the smallest of these plans. */
static double best_baseline(const slc_profile *profile, uint64_t limit, uint64_t *least)
{
    const slc_job *job = &profile->job;
    slc_strategy *strategies = calloc(job->unit_count, sizeof *strategies);
    const slc_scheduler *scheduler;
    double best = 0;
    *least = UINT64_MAX;
    for (int k = 0; k < SLC_EXACT_STRATEGIES; k++)
        for (size_t s = 0; (scheduler = slc_scheduler_at(s)); s++) {
            slc_plan *plan;
            slc_forecast forecast;
            if (!scheduler->baseline) continue;
            for (uint32_t u = 0; u < job->unit_count; u++) strategies[u] = (slc_strategy)k;
            slc_scheduling in = {.job = job, .strategies = strategies, .times = &profile->times, .limit = limit};
            assert_int_equal(slc_plan_make(&in, scheduler, &plan), SLUICE_OK);
            assert_int_equal(slc_simulate(job, &profile->times, plan, NULL, &forecast), SLUICE_OK);
            if (plan->arena_bytes <= limit && (!best || forecast.step_s < best)) best = forecast.step_s;
            if (plan->arena_bytes < *least) *least = plan->arena_bytes;
            slc_plan_destroy(plan);
        }
    free(strategies);
    return best;
}

static slc_joint_answer plan(const slc_profile *profile, uint64_t limit)
{
    const slc_job *job = &profile->job;
    slc_strategy *strategies = calloc(job->unit_count, sizeof *strategies);
    uint8_t *recompute = calloc(job->layer_count, 1);
    for (uint32_t u = 0; u < job->unit_count; u++) strategies[u] = SLC_STRATEGIES;
    for (uint32_t l = 0; l < job->layer_count; l++) recompute[l] = job->can_recompute[l] ? 2 : 0;
    slc_joint_request request = {.job = job,
                                 .times = &profile->times,
                                 .strategies = strategies,
                                 .recompute = recompute,
                                 .limit = limit,
                                 .effort_s = 100, /* the number of tries ends the search */
                                 .tries = 30};
    slc_joint_answer answer;
    unsigned calls = solver.calls;
    assert_int_equal(slc_joint_plan(&request, &answer, NULL), SLUICE_OK);
    assert_true(solver.calls > calls); /* the solver was asked */
    assert_int_equal(slc_plan_validate(job, answer.plan), SLUICE_OK);
    assert_true(answer.plan->arena_bytes <= limit);
    assert_true(!strstr(answer.member, "ilp"));
    free(strategies);
    free(recompute);
    return answer;
}

static void fails(sluice_status status)
{
    solver.status = status;
    for (uint64_t seed = 1; seed <= test_rounds(SEEDS); seed++) {
        slc_profile *profile = draw(seed);
        slc_joint_answer answer = plan(profile, UINT64_MAX);
        uint64_t most = answer.plan->arena_bytes, least;
        best_baseline(profile, 0, &least);
        for (uint64_t share = 0; share <= 2; share++) { /* from the least memory in which a baseline fits */
            uint64_t limit = most > least ? least + (most - least) / 2 * share : least;
            slc_plan_destroy(answer.plan);
            answer = plan(profile, limit);
            double best = best_baseline(profile, limit, &least);
            assert_true(best > 0 && answer.forecast.step_s <= best * (1 + 1e-9));
            assert_true(status ? !!strstr(answer.note, "the basis is gone") : !*answer.note);
        }
        slc_plan_destroy(answer.plan);
        slc_profile_destroy(profile);
    }
}

static void an_error_leaves_the_best_baseline_and_a_note(void **state)
{
    (void)state;
    fails(SLUICE_ERR_FORMAT);
}

static void no_answer_in_time_leaves_the_best_baseline(void **state)
{
    (void)state;
    fails(SLUICE_OK);
}

/* Returns what the command writes to standard output. */
static char *output_of(int argc, char **argv)
{
    FILE *file = tmpfile();
    assert_non_null(file);
    fflush(stdout);
    int own = dup(STDOUT_FILENO);
    dup2(fileno(file), STDOUT_FILENO);
    int code = slc_command_plan.run(argc, argv);
    fflush(stdout);
    dup2(own, STDOUT_FILENO);
    close(own);
    assert_int_equal(code, 0);
    char *text = calloc(1, 1 << 16);
    rewind(file);
    assert_true(fread(text, 1, (1 << 16) - 1, file) > 0);
    fclose(file);
    return text;
}

static void the_command_prints_the_note(void **state)
{
    (void)state;
    char path[] = "/tmp/solver_failure_test_XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    slc_profile *profile = draw(1);
    assert_int_equal(slc_profile_write(profile, path), SLUICE_OK);
    char command[] = "sluice plan", option[] = "--profile";
    char *argv[] = {command, option, path, NULL};
    for (int failing = 0; failing < 2; failing++) {
        solver.status = failing ? SLUICE_ERR_FORMAT : SLUICE_OK;
        char *text = output_of(3, argv);
        assert_non_null(strstr(text, "\nschedule   ilp"));
        char *note = strstr(text, "\nnote ");
        assert_int_equal(!!note, failing);
        if (failing) assert_non_null(strstr(note, "the basis is gone"));
        free(text);
    }
    unlink(path);
    slc_profile_destroy(profile);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_error_leaves_the_best_baseline_and_a_note),
        cmocka_unit_test(no_answer_in_time_leaves_the_best_baseline),
        cmocka_unit_test(the_command_prints_the_note),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
