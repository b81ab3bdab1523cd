/* Planning that runs out of memory says so, wherever that is. */
#include "tests/support/base/failing_memory.h"
#include "tests/support/base/folder.h"
#include "tests/support/ilp/random_slot_job.h"
#include "ilp/slot_model.h"
#include "sched/layout/make_plan.h"
#include "tests/support/plan/random_job.h"
#include "sched/planner/parts.h"
#include "sched/simulate/simulate.h"

#include <stdio.h>

enum { JOBS = 3 };

typedef struct {
    test_job t;
    slc_strategy strategies[TEST_UNITS];
    slc_scheduling in;
    const slc_scheduler *scheduler;
    const char *path;
} planning;

static sluice_status parse_file(void *context)
{
    planning *p = context;
    return slc_strategies_parse(&p->t.job, p->path, p->strategies);
}

static sluice_status make(void *context)
{
    planning *p = context;
    slc_plan *plan = NULL;
    sluice_status status = slc_plan_make(&p->in, p->scheduler, &plan);
    if (!status) slc_plan_destroy(plan);
    return status;
}

static sluice_status measure(void *context)
{
    planning *p = context;
    uint64_t bytes;
    return slc_plan_measure(&p->in, p->scheduler, UINT64_MAX, &bytes);
}

static sluice_status simulate(void *context)
{
    planning *p = context;
    slc_plan *plan = NULL;
    slc_times times = {0};
    slc_forecast forecast;
    sluice_status status = slc_times_estimate(&p->t.job, &times);
    if (!status) status = slc_plan_make(&p->in, p->scheduler, &plan);
    if (!status) status = slc_simulate(&p->t.job, &times, plan, NULL, &forecast);
    slc_plan_destroy(plan);
    slc_times_fini(&times);
    return status;
}

static void planning_draw(planning *p, uint64_t seed)
{
    test_dice dice = {.seed = seed};
    *p = (planning){0};
    test_job_draw(&p->t, &dice);
    test_strategies_draw(&p->t.job, &dice, p->strategies);
    p->in = (slc_scheduling){.job = &p->t.job, .strategies = p->strategies, .limit = UINT64_MAX, .seed = seed};
}

static void schedulers_tell(void **state)
{
    (void)state;
    static planning p;
    for (uint64_t seed = 1; seed <= JOBS; seed++) {
        planning_draw(&p, seed);
        for (size_t s = 0; (p.scheduler = slc_scheduler_at(s)); s++) {
            /* Without its solver ilp falls back to another order, after an error that is none of memory. */
            if (p.scheduler == &slc_scheduler_ilp && !slc_slot_model_solver()) continue;
            assert_true(memory_runs_out(p.scheduler->name, 16, make, &p, "no memory") > 10);
            assert_true(memory_runs_out(p.scheduler->name, 16, measure, &p, "no memory") > 10);
        }
        p.scheduler = &slc_scheduler_one_ahead;
        assert_true(memory_runs_out("simulate", 16, simulate, &p, "packing") > 20);
    }
}

static void strategies_tell(void **state)
{
    (void)state;
    static planning p;
    static const char json[] = "{\"layers\": {\"*\": \"sdp\"}}";
    planning_draw(&p, 1);
    p.path = write_file("strategies.json", json, strlen(json));
    assert_true(memory_runs_out("strategies", 16, parse_file, &p, NULL) > 0);
}

static sluice_status solve(void *context)
{
    slc_slot_solution answer = {0};
    sluice_status status = slc_slot_model_solve(context, &answer);
    slc_slot_solution_fini(&answer);
    return status;
}

static sluice_status solve_least(void *context)
{
    slc_slot_solution answer = {0};
    uint64_t limit;
    sluice_status status = slc_slot_model_least_memory(context, &limit, &answer);
    slc_slot_solution_fini(&answer);
    return status;
}

static void the_slot_model_tells(void **state)
{
    (void)state;
    if (!slc_slot_model_solver()) {
        puts("SKIP: the slot model without memory: built without GLPK");
        skip();
    }
    static slot_job t;
    slot_dice dice = {.seed = 3};
    for (int i = 0; i < JOBS; i++) {
        slot_job_draw(&t, &dice, 3, MOST_UNITS, 2);
        slc_slot_request request = {
            .job = &t.job, .times = &t.times, .allowed = t.allowed, .recompute = t.recompute, .gap = 0.01};
        slc_slot_solution answer;
        assert_int_equal(slc_slot_model_least_memory(&request, &request.limit, &answer), SLUICE_OK);
        slc_slot_solution_fini(&answer);
        request.limit += request.limit / 10;
        assert_true(memory_runs_out("least memory", 16, solve_least, &request, NULL) > 10);
        assert_true(memory_runs_out("slot model", 16, solve, &request, NULL) > 15);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(schedulers_tell),
        cmocka_unit_test(strategies_tell),
        cmocka_unit_test(the_slot_model_tells),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
