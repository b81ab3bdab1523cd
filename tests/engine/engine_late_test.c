/* If every reduction, agreement, update and gather of a plan is late, a program hears of a step's verdict at the end of
 * the next step, or from any call that drains, and is told which step and layer the verdict is about. */
#include "lib/engine/engine.h"
#include "lib/plan/strategy_table.h"
#include "sched/layout/make_plan.h"
#include "tests/support/engine/plain_layers.h"
#include "tests/support/planner_of.h"
#include "tests/support/ranks.h"

#include <math.h>
#include <sluice/sluice.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

enum { COUNT = 500, LAYERS = 2 };

typedef struct {
    const char *strategy;
    bool drain;
} trial;

typedef struct {
    sluice_world *world;
    plain_layers layers;
    bool poison; /* the step's gradient of the second layer */
} model;

/* Makes a plan that does everything of the step before ahead of the first slot. */
static sluice_status plan_late(void *context, const slc_job *job, const slc_plan_request *request,
                               slc_plan_answer *answer)
{
    (void)context;
    slc_strategy *strategies = malloc(job->unit_count * sizeof *strategies);
    slc_order order = {0};
    slc_scheduling in = {.job = job, .strategies = strategies, .limit = UINT64_MAX};
    for (uint32_t u = 0; u < job->unit_count; u++) slc_strategy_parse(request->strategy, &strategies[u]);
    for (uint32_t u = 0; u < job->unit_count; u++)
        slc_order_run(&order, slc_operations_of(job, &job->units[u], strategies[u]).reduce, true, 0, u, 0, 0,
                      slc_unit_blocks(&job->units[u]));
    slc_order_run(&order, SLC_ITEM_AGREE, true, 0, SLC_NONE, 0, 0, 0);
    for (uint32_t u = 0; u < job->unit_count; u++) {
        slc_unit_operations of = slc_operations_of(job, &job->units[u], strategies[u]);
        slc_order_run(&order, of.update, true, 0, u, 0, 0, slc_unit_blocks(&job->units[u]));
        if (of.gather_value != SLC_ITEM_KINDS)
            slc_order_run(&order, of.gather_value, true, 0, u, 0, 0, slc_unit_blocks(&job->units[u]));
    }
    for (uint32_t s = 0; s < slc_job_slots(job); s++) {
        slc_order_gathers_for(&order, job, strategies, false, 0, s);
        slc_order_slot(&order, 0, s);
    }
    *answer = (slc_plan_answer){0};
    sluice_status status = slc_plan_from_order(&in, &order, &slc_scheduler_one_ahead, &answer->plan);
    slc_order_fini(&order);
    free(strategies);
    return status;
}

static int create(model *w, const trial *t)
{
    sluice_config config;
    sluice_runtime *rt;
    sluice_config_init(&config);
    config.strategy = t->strategy;
    config.schedule = "one_ahead"; /* no other plan follows the given one */
    RANK_CHECK(!sluice_world_create(NULL, &w->world));
    RANK_CHECK(!slc_engine_create(w->world, &config, planner_of(plan_late), &rt));
    RANK_CHECK(!plain_layers_add(&w->layers, rt, LAYERS, COUNT) && !sluice_runtime_commit(rt));
    return 0;
}

static void add_ones(void *context, uint32_t layer, const float *value, float *gradient)
{
    const model *w = context;
    (void)value;
    for (uint64_t i = 0; gradient && i < COUNT; i++) gradient[i] += 1;
    if (gradient && w->poison && layer == 1) gradient[137] = NAN;
}

/* Runs a step up to its step_end, which the caller calls. */
static int compute(model *w, bool poison)
{
    w->poison = poison;
    RANK_CHECK(!sluice_step_begin(w->layers.rt, &SLUICE_INIT(sluice_step_options, .learning_rate = 0.1)));
    RANK_CHECK(!plain_layers_run(&w->layers, add_ones, w));
    return 0;
}

static int a_verdict(int rank, int size, void *context)
{
    const trial *t = context;
    model w;
    if (create(&w, t)) return 1;
    for (int step = 1; step <= 3; step++) {
        sluice_step_report report = SLUICE_INIT(sluice_step_report);
        if (compute(&w, step == 3 && rank == size - 1)) return 1;
        RANK_CHECK(!sluice_step_end(w.layers.rt, &report) && report.step == (uint64_t)step);
    }
    sluice_status status;
    if (t->drain) {
        float value;
        status = sluice_param_read(w.layers.param[0], 0, 1, &value);
    } else {
        if (compute(&w, false)) return 1;
        status = sluice_step_end(w.layers.rt, NULL);
    }
    RANK_CHECK(status == SLUICE_ERR_NON_FINITE);
    RANK_CHECK(strstr(sluice_last_error(), "step 3:") && strstr(sluice_last_error(), "\"l1\""));
    /* it stays failed */
    RANK_CHECK(sluice_step_begin(w.layers.rt, &SLUICE_INIT(sluice_step_options)) == SLUICE_ERR_NON_FINITE);
    sluice_runtime_destroy(w.layers.rt);
    sluice_world_destroy(w.world);
    return 0;
}

/* Nothing waits for operations that were not drained, and nothing hangs. */
static int destroyed_with_late_work(int rank, int size, void *context)
{
    (void)rank, (void)size;
    model w;
    if (create(&w, context)) return 1;
    for (int step = 0; step < 2; step++)
        if (compute(&w, false) || sluice_step_end(w.layers.rt, NULL)) return 1;
    sluice_runtime_destroy(w.layers.rt);
    RANK_CHECK(!sluice_world_barrier(w.world));
    sluice_world_destroy(w.world);
    return 0;
}

static void verdicts_name_their_step(void **state)
{
    (void)state;
    const char *const strategies[] = {"dp", "oss", "sdp", "fsdp"};
    for (int s = 0; s < 4; s++)
        for (int drain = 0; drain < 2; drain++)
            assert_int_equal(run_ranks(1 + s % 3, a_verdict, &(trial){strategies[s], drain}, 60), 0);
}

static void destroying_drains_nothing(void **state)
{
    (void)state;
    assert_int_equal(run_ranks(2, destroyed_with_late_work, &(trial){"sdp", false}, 60), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(verdicts_name_their_step),
                                       cmocka_unit_test(destroying_drains_nothing)};
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
