/* A runtime tells its plan, and another runs it from a file: the same decisions and the same bits, with no plan of its
 * own. A plan that does otherwise than the program wants, needs more than the budget, or is not there on every rank is
 * refused on all of them. */
#include "tests/support/base/failing_memory.h"
#include "tests/support/ranks.h"

#include <sluice/sluice.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

enum { LAYERS = 4, PARAMS = 3000, FLOATS = 512, STEPS = 5 };

typedef struct {
    sluice_config config;
    const char *strategy_of_2; /* NULL: none */
} wish;

typedef struct {
    sluice_world *world;
    sluice_runtime *rt;
    sluice_layer *layers[LAYERS];
    sluice_param *params[LAYERS];
} model;

typedef struct {
    char folder[64], path[80], other[80];
} files;

static sluice_status stand_still(const sluice_update *update, void *context)
{
    (void)update, (void)context;
    return SLUICE_OK;
}

static wish default_wish(void)
{
    wish w = {0};
    sluice_config_init(&w.config);
    w.config.schedule = "greedy"; /* it measures, and plans again, without a solver */
    w.config.fuse = "off";
    return w;
}

static int begin(model *m, const wish *w)
{
    static const char *const names[LAYERS] = {"first", "second", "third", "fourth"};
    sluice_activation *kept;
    RANK_CHECK(!sluice_runtime_create(m->world, &w->config, &m->rt));
    for (int l = 0; l < LAYERS; l++) {
        RANK_CHECK(!sluice_layer_add(m->rt, names[l], &m->layers[l]) &&
                   !sluice_layer_can_recompute(m->layers[l], true));
        RANK_CHECK(!sluice_param_add(m->layers[l], &SLUICE_INIT(sluice_param_desc, .name = "w", .count = PARAMS),
                                     &m->params[l]));
        const sluice_activation_desc desc = SLUICE_INIT(sluice_activation_desc, .name = "a", .bytes = FLOATS * 4,
                                                        .last = SLUICE_BACKWARD, .recomputable = true);
        RANK_CHECK(!sluice_activation_add(m->layers[l], &desc, &kept));
    }
    if (w->strategy_of_2) RANK_CHECK(!sluice_layer_strategy(m->layers[2], w->strategy_of_2));
    return 0;
}

static int write_values(model *m)
{
    float values[PARAMS];
    for (int l = 0; l < LAYERS; l++) {
        for (int i = 0; i < PARAMS; i++) values[i] = (float)((i * 7 + l) % 23) / 23;
        RANK_CHECK(!sluice_param_write(m->params[l], 0, PARAMS, values));
    }
    return 0;
}

static int make_step(model *m, int rank, sluice_step_report *report)
{
    RANK_CHECK(!sluice_step_begin(m->rt, &SLUICE_INIT(sluice_step_options, .learning_rate = 0.1)));
    for (int l = 0; l < LAYERS; l++)
        RANK_CHECK(!sluice_forward_begin(m->layers[l]) && !sluice_forward_end(m->layers[l]));
    for (int l = LAYERS - 1; l >= 0; l--) {
        if (sluice_layer_recomputes(m->layers[l]))
            RANK_CHECK(!sluice_recompute_begin(m->layers[l]) && !sluice_recompute_end(m->layers[l]));
        RANK_CHECK(!sluice_backward_begin(m->layers[l]));
        const float *value = sluice_param_value(m->params[l]);
        float *gradient = sluice_param_gradient(m->params[l]);
        for (int i = 0; i < PARAMS; i++) gradient[i] += value[i] * (float)(rank + 1) + (float)(i % 5);
        RANK_CHECK(!sluice_backward_end(m->layers[l]));
    }
    RANK_CHECK(!sluice_step_end(m->rt, report));
    return 0;
}

static int write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "we");
    RANK_CHECK(file && fputs(text, file) >= 0 && !fclose(file));
    return 0;
}

static char *read_file(const char *path)
{
    static char text[1 << 20];
    FILE *file = fopen(path, "re");
    size_t length = file ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file) fclose(file);
    text[length] = 0;
    return text;
}

/* A plan's text without its forecast, which is by other times. */
static void cut_forecast(char *text)
{
    char *from = strstr(text, "\"forecast\""), *to = from ? strchr(from, '}') : NULL;
    if (to) memmove(from, to, strlen(to) + 1);
}

static int make(int rank, int size, void *context)
{
    const files *f = context;
    (void)size;
    model m = {0};
    wish w = default_wish();
    w.config.recompute = SLUICE_RECOMPUTE_ALL;
    w.config.strategy = "random:3";
    sluice_plan_report plan = SLUICE_INIT(sluice_plan_report);
    sluice_step_report step = SLUICE_INIT(sluice_step_report);
    char *text, *profile, hash[65];
    RANK_CHECK(!sluice_world_create(NULL, &m.world));
    if (begin(&m, &w)) return 1;
    RANK_CHECK(sluice_runtime_plan(m.rt, &plan) == SLUICE_ERR_ORDER);
    RANK_CHECK(sluice_runtime_plan_json(m.rt, "m", &text, &profile) == SLUICE_ERR_ORDER && !text && !profile);
    RANK_CHECK(!sluice_runtime_commit(m.rt));
    RANK_CHECK(sluice_runtime_plan(m.rt, NULL) == SLUICE_ERR_ARGUMENT);
    RANK_CHECK(sluice_runtime_plan_json(m.rt, NULL, &text, &profile) == SLUICE_ERR_ARGUMENT);
    RANK_CHECK(!sluice_runtime_plan(m.rt, &plan));
    RANK_CHECK(plan.number == 1 && plan.provisional && !plan.measured && !strcmp(plan.schedule, "serial"));
    RANK_CHECK(plan.dp_bytes == sluice_runtime_dp_bytes(m.rt) && plan.budget_bytes == 0 && plan.planned_bytes);
    if (write_values(&m)) return 1;
    for (int s = 0; s < STEPS; s++)
        if (make_step(&m, rank, &step)) return 1;
    RANK_CHECK(!sluice_runtime_plan(m.rt, &plan));
    RANK_CHECK(plan.number == 2 && step.plan == 2 && !plan.provisional && plan.measured);
    RANK_CHECK(!strcmp(plan.schedule, "greedy") && plan.step_s == step.predicted_step_s && plan.step_s > 0);
    RANK_CHECK(!sluice_runtime_sync(m.rt) && !sluice_runtime_weights_sha256(m.rt, hash));
    RANK_CHECK(!sluice_runtime_plan_json(m.rt, "a model", &text, &profile));
    RANK_CHECK(strstr(profile, "\"a model\"") && strstr(profile, "measured on"));
    if (rank == 0 && (write_file(f->path, text) || write_file(f->other, hash))) return 1;
    free(text);
    free(profile);
    sluice_runtime_destroy(m.rt);
    sluice_world_destroy(m.world);
    return 0;
}

static int run_kept(int rank, int size, void *context)
{
    const files *f = context;
    (void)size;
    model m = {0};
    wish w = default_wish();
    w.config.plan_file = rank ? "anything" : f->path; /* rank 0 reads it */
    sluice_plan_report plan = SLUICE_INIT(sluice_plan_report);
    sluice_step_report step = SLUICE_INIT(sluice_step_report);
    char *text, *profile, hash[65];
    RANK_CHECK(!sluice_world_create(NULL, &m.world));
    if (begin(&m, &w)) return 1;
    RANK_CHECK(!sluice_runtime_commit(m.rt) && !write_values(&m));
    for (int s = 0; s < STEPS; s++)
        if (make_step(&m, rank, &step)) return 1;
    RANK_CHECK(!sluice_runtime_plan(m.rt, &plan));
    RANK_CHECK(plan.number == 1 && step.plan == 1 && !plan.provisional && !plan.measured);
    RANK_CHECK(!strcmp(plan.schedule, "greedy") && step.predicted_step_s == 0 && plan.dp_bytes);
    for (int l = 0; l < LAYERS; l++) RANK_CHECK(sluice_layer_recomputes(m.layers[l]));
    RANK_CHECK(!sluice_runtime_sync(m.rt) && !sluice_runtime_weights_sha256(m.rt, hash));
    RANK_CHECK(!strcmp(hash, read_file(f->other)));
    RANK_CHECK(!sluice_runtime_plan_json(m.rt, "a model", &text, &profile) && strstr(profile, "estimated from sizes"));
    char *kept = read_file(f->path);
    cut_forecast(kept);
    cut_forecast(text);
    RANK_CHECK(!strcmp(kept, text));
    free(text);
    free(profile);
    /* A plan from a file serves like any other: the program may ask for another one after it. */
    RANK_CHECK(!sluice_runtime_replan(m.rt, "dp", "serial", 0) && !sluice_runtime_plan(m.rt, &plan));
    RANK_CHECK(plan.number == 2 && !strcmp(sluice_layer_strategy_name(m.layers[0]), "dp"));
    if (make_step(&m, rank, &step)) return 1;
    sluice_runtime_destroy(m.rt);
    sluice_world_destroy(m.world);
    return 0;
}

typedef struct {
    const files *files;
    wish wish;
    const char *words;
    sluice_status status;
    bool only_rank_0;
} refusal;

static int is_refused(int rank, int size, void *context)
{
    refusal *r = context;
    (void)size;
    model m = {0};
    if (rank && r->only_rank_0) r->wish.config.plan_file = NULL;
    RANK_CHECK(!sluice_world_create(NULL, &m.world));
    if (begin(&m, &r->wish)) return 1;
    sluice_status status = sluice_runtime_commit(m.rt);
    if (status != r->status || !strstr(sluice_last_error(), r->words)) {
        fprintf(stderr, "rank %d: %d, \"%s\"; wanted \"%s\"\n", rank, status, sluice_last_error(), r->words);
        return 1;
    }
    RANK_CHECK(!sluice_world_check(m.world)); /* all ranks fail together, so the world serves another runtime */
    sluice_runtime_destroy(m.rt);
    sluice_world_destroy(m.world);
    return 0;
}

static files make_files(void)
{
    files f = {.folder = "/tmp/sluice-plan-file-XXXXXX"};
    assert_non_null(mkdtemp(f.folder));
    snprintf(f.path, sizeof f.path, "%s/plan", f.folder);
    snprintf(f.other, sizeof f.other, "%s/hash", f.folder);
    return f;
}

static void remove_files(const files *f)
{
    unlink(f->path);
    unlink(f->other);
    rmdir(f->folder);
}

static void a_kept_plan_runs(void **state)
{
    (void)state;
    for (int ranks = 1; ranks <= 3; ranks++) {
        files f = make_files();
        assert_int_equal(run_ranks(ranks, make, &f, 60), 0);
        assert_int_equal(run_ranks(ranks, run_kept, &f, 60), 0);
        remove_files(&f);
    }
}

static refusal refusal_of(const files *f, sluice_status status, const char *words)
{
    refusal r = {.files = f, .wish = default_wish(), .words = words, .status = status};
    r.wish.config.plan_file = f->path;
    return r;
}

static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    files f = make_files();
    assert_int_equal(run_ranks(2, make, &f, 60), 0);

    refusal r = refusal_of(&f, SLUICE_ERR_ARGUMENT, "and recompute is none");
    r.wish.config.recompute = SLUICE_RECOMPUTE_NONE;
    assert_int_equal(run_ranks(2, is_refused, &r, 60), 0);

    /* At most one of two strategies is that of the plan. */
    const char *const wanted[] = {"fsdp", "dp"};
    int refused = 0;
    for (int s = 0; s < 2; s++) {
        r = refusal_of(&f, SLUICE_ERR_ARGUMENT, "layer \"third\" is ");
        r.wish.strategy_of_2 = wanted[s];
        refused += run_ranks(2, is_refused, &r, 60) == 0;
    }
    assert_true(refused >= 1);

    r = refusal_of(&f, SLUICE_ERR_BUDGET, "config.budget_bytes is 20000 ");
    r.wish.config.budget_bytes = 20000;
    assert_int_equal(run_ranks(2, is_refused, &r, 60), 0);

    r = refusal_of(&f, SLUICE_ERR_FORMAT, "$.job.world: the plan was made for 2, this job has 3 (number of ranks)");
    assert_int_equal(run_ranks(3, is_refused, &r, 60), 0);

    r = refusal_of(&f, SLUICE_ERR_PATH, "config.plan_file: ");
    r.wish.config.plan_file = "/nowhere/plan";
    assert_int_equal(run_ranks(2, is_refused, &r, 60), 0);

    r = refusal_of(&f, SLUICE_ERR_MISMATCH, "plan_file");
    r.only_rank_0 = true;
    assert_int_equal(run_ranks(2, is_refused, &r, 60), 0);
    remove_files(&f);
}

static int make_computed(int rank, int size, void *context)
{
    const files *f = context;
    (void)size;
    model m = {0};
    wish w = default_wish();
    w.config.updates = SLUICE_UPDATES_COMPUTE;
    w.config.schedule = "one_ahead";
    char *text, *profile;
    RANK_CHECK(!sluice_world_create(NULL, &m.world));
    if (begin(&m, &w)) return 1;
    RANK_CHECK(!sluice_runtime_commit(m.rt) && !sluice_runtime_plan_json(m.rt, "m", &text, &profile));
    if (rank == 0 && write_file(f->path, text)) return 1;
    free(text);
    free(profile);
    sluice_runtime_destroy(m.rt);
    sluice_world_destroy(m.world);
    return 0;
}

static void an_optimizer_that_cannot_is_not_asked_to(void **state)
{
    (void)state;
    files f = make_files();
    const sluice_optimizer own =
        SLUICE_INIT(sluice_optimizer, .name = "own", .state_count = 2, .state_name = {"a", "b"}, .update = stand_still);
    assert_int_equal(run_ranks(2, make_computed, &f, 60), 0);
    refusal r = refusal_of(&f, SLUICE_ERR_ARGUMENT, "on the compute threads");
    r.wish.config.optimizer = &own;
    assert_int_equal(run_ranks(2, is_refused, &r, 60), 0);
    remove_files(&f);
}

static sluice_status tell(void *rt)
{
    char *text, *profile;
    sluice_status status = sluice_runtime_plan_json(rt, "a model", &text, &profile);
    assert_true(status ? !text && !profile : text && profile);
    free(text);
    free(profile);
    return status;
}

/* A world of one, in this process. */
static void telling_without_memory(void **state)
{
    (void)state;
    model m;
    wish w = default_wish();
    assert_int_equal(sluice_world_create(NULL, &m.world), SLUICE_OK);
    assert_int_equal(begin(&m, &w), 0);
    assert_int_equal(sluice_runtime_commit(m.rt), SLUICE_OK);
    assert_true(memory_runs_out("plan_json", 16, tell, m.rt, NULL) > 5);
    sluice_runtime_destroy(m.rt);
    sluice_world_destroy(m.world);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_kept_plan_runs), cmocka_unit_test(what_does_not_fit_is_refused),
        cmocka_unit_test(an_optimizer_that_cannot_is_not_asked_to), cmocka_unit_test(telling_without_memory)};
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
