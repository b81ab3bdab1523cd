/* Recomputation as a program meets it: which layers and activations may be declared, which calls come in which order,
 * and how others are refused. */
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

enum { FLOATS = 256, PARAMS = 100 };

/* A planner that recomputes if the request says so; if it leaves the choice, it does not. */
static sluice_status plan_as_asked(void *context, const slc_job *job, const slc_plan_request *request,
                                   slc_plan_answer *answer)
{
    (void)context;
    slc_strategy *strategies = malloc(job->unit_count * sizeof *strategies);
    bool *recompute = calloc(job->layer_count, sizeof *recompute);
    for (uint32_t u = 0; u < job->unit_count; u++) strategies[u] = SLC_FSDP;
    for (uint32_t l = 0; l < job->layer_count; l++) recompute[l] = request->recompute[l] == 1;
    slc_scheduling in = {.job = job, .strategies = strategies, .recompute = recompute, .limit = UINT64_MAX};
    *answer = (slc_plan_answer){0};
    sluice_status status = slc_plan_make(&in, &slc_scheduler_one_ahead, &answer->plan);
    free(strategies);
    free(recompute);
    return status;
}

typedef struct {
    sluice_world *world;
    sluice_runtime *rt;
    sluice_layer *layer[2]; /* the first one can recompute */
    sluice_param *param[2];
    sluice_activation *kept;
} model;

static int build(model *w, sluice_recompute recompute)
{
    sluice_config config;
    sluice_config_init(&config);
    config.recompute = recompute;
    RANK_CHECK(!sluice_world_create(NULL, &w->world));
    RANK_CHECK(!slc_engine_create(w->world, &config, planner_of(plan_as_asked), &w->rt));
    for (int l = 0; l < 2; l++) {
        RANK_CHECK(!sluice_layer_add(w->rt, l ? "second" : "first", &w->layer[l]));
        /* The first layer's backward needs the gradient alone, but its values if it recomputes. */
        RANK_CHECK(!sluice_param_add(
            w->layer[l], &SLUICE_INIT(sluice_param_desc, .name = "w", .count = PARAMS, .no_backward_value = true),
            &w->param[l]));
    }
    return 0;
}

static int commit(model *w)
{
    const sluice_activation_desc desc = {.struct_size = sizeof(sluice_activation_desc),
                                         .name = "a",
                                         .bytes = FLOATS * sizeof(float),
                                         .last = SLUICE_BACKWARD,
                                         .recomputable = true};
    RANK_CHECK(!sluice_layer_can_recompute(w->layer[0], true));
    RANK_CHECK(!sluice_activation_add(w->layer[0], &desc, &w->kept));
    RANK_CHECK(!sluice_runtime_commit(w->rt));
    RANK_CHECK(sluice_layer_can_recompute(w->layer[0], false) == SLUICE_ERR_ORDER);
    return 0;
}

static int destroy(model *w)
{
    sluice_runtime_destroy(w->rt);
    sluice_world_destroy(w->world);
    return 0;
}

static int forwards(model *w)
{
    RANK_CHECK(!sluice_step_begin(w->rt, &SLUICE_INIT(sluice_step_options, .learning_rate = 0.1)));
    for (int l = 0; l < 2; l++) RANK_CHECK(!sluice_forward_begin(w->layer[l]) && !sluice_forward_end(w->layer[l]));
    RANK_CHECK(!sluice_backward_begin(w->layer[1]) && !sluice_backward_end(w->layer[1]));
    return 0;
}

static int recomputes(int rank, int size, void *context)
{
    (void)rank, (void)size, (void)context;
    model w = {0};
    if (build(&w, SLUICE_RECOMPUTE_ALL) || commit(&w)) return 1;
    RANK_CHECK(sluice_layer_recomputes(w.layer[0]) && !sluice_layer_recomputes(w.layer[1]));
    for (int step = 0; step < 3; step++) {
        if (forwards(&w)) return 1;
        RANK_CHECK(!sluice_recompute_begin(w.layer[0]));
        RANK_CHECK(sluice_param_value(w.param[0]) && !sluice_param_gradient(w.param[0]));
        memset(sluice_activation_data(w.kept), step, FLOATS * sizeof(float));
        RANK_CHECK(!sluice_recompute_end(w.layer[0]) && !sluice_param_value(w.param[0]));
        RANK_CHECK(!sluice_backward_begin(w.layer[0]));
        RANK_CHECK(((char *)sluice_activation_data(w.kept))[17] == step && sluice_param_gradient(w.param[0]));
        RANK_CHECK(!sluice_backward_end(w.layer[0]) && !sluice_step_end(w.rt, NULL));
    }
    return destroy(&w);
}

static bool refused(sluice_status status, const char *words)
{
    return status == SLUICE_ERR_ORDER && strstr(sluice_last_error(), words);
}

static int wrong_order(int rank, int size, void *context)
{
    (void)rank, (void)size;
    const int *which = context;
    model w = {0};
    if (build(&w, *which == 0 ? SLUICE_RECOMPUTE_NONE : SLUICE_RECOMPUTE_ALL) || commit(&w) || forwards(&w)) return 1;
    switch (*which) {
    case 0: RANK_CHECK(refused(sluice_recompute_begin(w.layer[0]), "layer \"first\": recompute_begin")); break;
    case 1: RANK_CHECK(refused(sluice_backward_begin(w.layer[0]), "where recompute_begin of \"first\"")); break;
    case 2:
        RANK_CHECK(!sluice_recompute_begin(w.layer[0]));
        RANK_CHECK(refused(sluice_backward_begin(w.layer[0]), "where recompute_end of \"first\""));
        break;
    case 3:
        RANK_CHECK(!sluice_recompute_begin(w.layer[0]) && !sluice_recompute_end(w.layer[0]));
        RANK_CHECK(refused(sluice_recompute_begin(w.layer[0]), "where backward_begin of \"first\""));
        break;
    default:
        RANK_CHECK(!sluice_recompute_begin(w.layer[0]) && !sluice_recompute_end(w.layer[0]));
        RANK_CHECK(refused(sluice_step_end(w.rt, NULL), "backward of layer \"first\" has not ended"));
        break;
    }
    return destroy(&w);
}

static int wrong_declarations(int rank, int size, void *context)
{
    (void)rank, (void)size, (void)context;
    model w = {0};
    if (build(&w, SLUICE_RECOMPUTE_AUTO)) return 1;
    sluice_activation *out;
    const sluice_activation_desc good =
        SLUICE_INIT(sluice_activation_desc, .name = "b", .bytes = 64, .last = SLUICE_BACKWARD, .recomputable = true);
    sluice_activation_desc bad = good;
    bad.last = SLUICE_FORWARD;
    RANK_CHECK(sluice_activation_add(w.layer[0], &bad, &out) == SLUICE_ERR_ARGUMENT);
    bad = good;
    bad.first = SLUICE_BACKWARD;
    RANK_CHECK(sluice_activation_add(w.layer[0], &bad, &out) == SLUICE_ERR_ARGUMENT);
    bad = good;
    bad.last_layer = "second";
    RANK_CHECK(sluice_activation_add(w.layer[0], &bad, &out) == SLUICE_ERR_ARGUMENT);
    bad = good;
    bad.last_forward_layer = "second";
    RANK_CHECK(sluice_activation_add(w.layer[0], &bad, &out) == SLUICE_ERR_ARGUMENT);
    RANK_CHECK(strstr(sluice_last_error(), "\"b\" of layer \"first\""));
    RANK_CHECK(!sluice_activation_add(w.layer[1], &good, &out));
    RANK_CHECK(sluice_runtime_commit(w.rt) == SLUICE_ERR_ARGUMENT); /* its layer cannot recompute */
    RANK_CHECK(strstr(sluice_last_error(), "sluice_layer_can_recompute"));
    sluice_runtime_destroy(w.rt);

    sluice_config config;
    sluice_config_init(&config);
    config.recompute = (sluice_recompute)3;
    RANK_CHECK(sluice_runtime_create(w.world, &config, &w.rt) == SLUICE_ERR_ARGUMENT);
    RANK_CHECK(strstr(sluice_last_error(), "auto, none or all"));
    sluice_world_destroy(w.world);
    return 0;
}

static void a_layer_recomputes(void **state)
{
    (void)state;
    assert_int_equal(run_ranks(1, recomputes, NULL, 60), 0);
    assert_int_equal(run_ranks(2, recomputes, NULL, 60), 0);
}

static void another_order_is_refused(void **state)
{
    (void)state;
    for (int which = 0; which < 5; which++) assert_int_equal(run_ranks(1, wrong_order, &which, 60), 0);
}

static void declarations_are_checked(void **state)
{
    (void)state;
    assert_int_equal(run_ranks(1, wrong_declarations, NULL, 60), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_layer_recomputes), cmocka_unit_test(another_order_is_refused),
                                       cmocka_unit_test(declarations_are_checked)};
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
