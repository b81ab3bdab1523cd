/* Workspaces as a program meets them: where they are valid, which share memory, and what recomputation sees. */
#include "lib/engine/engine.h"
#include "sched/layout/make_plan.h"
#include "tests/support/planner_of.h"
#include "tests/support/ranks.h"

#include <sluice/sluice.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

enum { BIG = 4096, SMALL = 1000 };

/* Builds a model whose first layer recomputes. */
static sluice_status plan_serial(void *context, const slc_job *job, const slc_plan_request *request,
                                 slc_plan_answer *answer)
{
    (void)context;
    (void)request;
    slc_strategy *strategies = calloc(job->unit_count, sizeof *strategies);
    bool *recompute = calloc(job->layer_count, sizeof *recompute);
    recompute[0] = true;
    slc_scheduling in = {.job = job, .strategies = strategies, .recompute = recompute, .limit = UINT64_MAX};
    *answer = (slc_plan_answer){0};
    sluice_status status = slc_plan_make(&in, &slc_scheduler_serial, &answer->plan);
    free(strategies);
    free(recompute);
    return status;
}

typedef struct {
    sluice_world *world;
    sluice_runtime *rt;
    sluice_layer *layer[2];
    sluice_workspace *early, *late, *whole, *back;
} model;

static sluice_status add(model *w, sluice_direction direction, uint64_t bytes, uint32_t first, uint32_t last,
                         sluice_workspace **out)
{
    sluice_workspace_desc desc = SLUICE_INIT(sluice_workspace_desc, "w", bytes, direction, first, last);
    return sluice_workspace_add(w->layer[0], &desc, out);
}

static int build(model *w)
{
    sluice_config config;
    sluice_param *param;
    sluice_workspace *none;
    sluice_config_init(&config);
    RANK_CHECK(!sluice_world_create(NULL, &w->world));
    RANK_CHECK(!slc_engine_create(w->world, &config, planner_of(plan_serial), &w->rt));
    for (int l = 0; l < 2; l++) {
        RANK_CHECK(!sluice_layer_add(w->rt, l ? "second" : "first", &w->layer[l]));
        RANK_CHECK(!sluice_param_add(w->layer[l], &SLUICE_INIT(sluice_param_desc, .name = "w", .count = 100), &param));
    }
    RANK_CHECK(!sluice_layer_can_recompute(w->layer[0], true));
    RANK_CHECK(add(w, SLUICE_FORWARD, 0, 0, 1, &none) == SLUICE_ERR_ARGUMENT);
    RANK_CHECK(add(w, SLUICE_FORWARD, 1, 2, 1, &none) == SLUICE_ERR_ARGUMENT);
    RANK_CHECK(add(w, SLUICE_FORWARD, 1, UINT32_MAX, UINT32_MAX, &none) == SLUICE_ERR_ARGUMENT);
    RANK_CHECK(!add(w, SLUICE_FORWARD, BIG, 0, 3, &w->early) && !add(w, SLUICE_FORWARD, BIG, 4, 9, &w->late));
    RANK_CHECK(!add(w, SLUICE_FORWARD, SMALL, 0, UINT32_MAX, &w->whole));
    RANK_CHECK(!add(w, SLUICE_BACKWARD, SMALL, 0, UINT32_MAX, &w->back));
    RANK_CHECK(!sluice_workspace_data(w->early) && !sluice_workspace_data(NULL));
    RANK_CHECK(!sluice_runtime_commit(w->rt));
    return 0;
}

/* Workspaces that live at the same time lie apart, others may share memory, and all of them may be written. */
static int check_forward(const model *w)
{
    char *early = sluice_workspace_data(w->early), *late = sluice_workspace_data(w->late);
    char *whole = sluice_workspace_data(w->whole);
    RANK_CHECK(early && early == late && whole && (whole >= early + BIG || whole + SMALL <= early));
    RANK_CHECK((uintptr_t)early % 64 == 0 && (uintptr_t)whole % 64 == 0);
    RANK_CHECK(!sluice_workspace_data(w->back));
    memset(early, 1, BIG);
    memset(whole, 2, SMALL);
    RANK_CHECK(early[BIG - 1] == 1);
    return 0;
}

static int valid_in_their_slots(int rank, int size, void *context)
{
    (void)rank, (void)size, (void)context;
    model w = {0};
    if (build(&w)) return 1;
    for (int step = 0; step < 2; step++) {
        RANK_CHECK(!sluice_step_begin(w.rt, &SLUICE_INIT(sluice_step_options, .learning_rate = 0.1)));
        RANK_CHECK(!sluice_workspace_data(w.early) &&
                   strstr(sluice_last_error(), "\"first.w\": it is valid only in the"));
        RANK_CHECK(!sluice_forward_begin(w.layer[0]));
        if (check_forward(&w)) return 1;
        RANK_CHECK(!sluice_forward_end(w.layer[0]) && !sluice_forward_begin(w.layer[1]));
        RANK_CHECK(!sluice_workspace_data(w.early));
        RANK_CHECK(!sluice_forward_end(w.layer[1]));
        RANK_CHECK(!sluice_backward_begin(w.layer[1]) && !sluice_backward_end(w.layer[1]));
        RANK_CHECK(!sluice_recompute_begin(w.layer[0]));
        if (check_forward(&w)) return 1;
        RANK_CHECK(!sluice_recompute_end(w.layer[0]) && !sluice_workspace_data(w.early));
        RANK_CHECK(!sluice_backward_begin(w.layer[0]) && !sluice_workspace_data(w.early));
        char *back = sluice_workspace_data(w.back);
        RANK_CHECK(back);
        memset(back, 3, SMALL);
        RANK_CHECK(!sluice_backward_end(w.layer[0]) && !sluice_step_end(w.rt, NULL));
    }
    RANK_CHECK(!sluice_evaluate_begin(w.rt) && !sluice_forward_begin(w.layer[0]));
    if (check_forward(&w)) return 1;
    RANK_CHECK(!sluice_forward_end(w.layer[0]));
    sluice_memory_report report = SLUICE_INIT(sluice_memory_report);
    RANK_CHECK(!sluice_runtime_memory(w.rt, &report));
    RANK_CHECK(report.activation_sum_bytes == 2 * BIG + 2 * 1024);
    RANK_CHECK(report.activation_packed_bytes == BIG + 1024 && report.activation_bound_bytes == BIG + 1024);
    sluice_runtime_destroy(w.rt);
    sluice_world_destroy(w.world);
    return 0;
}

static void workspaces_are_valid_in_their_slots(void **state)
{
    (void)state;
    assert_int_equal(run_ranks(1, valid_in_their_slots, NULL, 60), 0);
    assert_int_equal(run_ranks(2, valid_in_their_slots, NULL, 60), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(workspaces_are_valid_in_their_slots)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
