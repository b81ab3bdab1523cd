/* Sizes that a program computed wrongly are refused: each sum of registered sizes is checked where it grows, and the
 * error names layer and parameter before anything of it can wrap. A refused parameter is not registered. */
#include "tests/support/ranks.h"

#include <sluice/sluice.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

typedef struct {
    sluice_world *world;
    sluice_runtime *rt;
    sluice_layer *layer;
} model;

static int begin(model *m)
{
    sluice_config config;
    sluice_config_init(&config);
    config.strategy = "dp";
    config.schedule = "serial";
    RANK_CHECK(!sluice_world_create(NULL, &m->world));
    RANK_CHECK(!sluice_runtime_create(m->world, &config, &m->rt));
    RANK_CHECK(!sluice_layer_add(m->rt, "l", &m->layer));
    return 0;
}

static int end(model *m)
{
    sluice_runtime_destroy(m->rt);
    sluice_world_destroy(m->world);
    return 0;
}

static sluice_status add_param(const model *m, const char *name, uint64_t count)
{
    sluice_param *param;
    return sluice_param_add(m->layer, &SLUICE_INIT(sluice_param_desc, .name = name, .count = count), &param);
}

/* The parameters that were not refused commit, and are read and written where they lie. */
static int commit_the_rest(const model *m)
{
    float written[4] = {1, 2, 3, 4}, read[4];
    RANK_CHECK(!sluice_runtime_commit(m->rt));
    for (uint32_t p = 0; p < sluice_runtime_param_count(m->rt); p++) {
        RANK_CHECK(!sluice_param_write(sluice_runtime_param(m->rt, p), 0, 4, written));
        RANK_CHECK(!sluice_param_read(sluice_runtime_param(m->rt, p), 0, 4, read));
        RANK_CHECK(!memcmp(written, read, sizeof read));
    }
    return 0;
}

static int sums_of_parameters(int rank, int size, void *context)
{
    (void)rank, (void)size, (void)context;
    static const uint64_t too_many[] = {UINT64_MAX,
                                        UINT64_MAX - 15,
                                        UINT64_MAX / 4,
                                        UINT64_C(1) << 58,
                                        (UINT64_C(1) << 58) - 1,
                                        (UINT64_C(1) << 58) - 16,
                                        (UINT64_C(1) << 50) + 1,
                                        (UINT64_C(1) << 50) - 15,
                                        (UINT64_C(1) << 50) - 1007};
    model m;
    if (begin(&m)) return 1;
    RANK_CHECK(!add_param(&m, "w", 1000));
    for (size_t i = 0; i < sizeof too_many / sizeof *too_many; i++) {
        RANK_CHECK(add_param(&m, "huge", too_many[i]) == SLUICE_ERR_ARGUMENT);
        RANK_CHECK(strstr(sluice_last_error(), "layer \"l\": parameter \"huge\" has"));
    }
    RANK_CHECK(!add_param(&m, "last", 33));
    RANK_CHECK(sluice_runtime_param_count(m.rt) == 2);
    if (commit_the_rest(&m)) return 1;
    return end(&m);
}

/* Each of these parameters is small enough by itself, but their sum is not. */
static int many_large_ones(int rank, int size, void *context)
{
    (void)rank, (void)size, (void)context;
    model m;
    uint32_t added = 0;
    sluice_status status = SLUICE_OK;
    if (begin(&m)) return 1;
    for (; added < 64; added++) {
        char name[16];
        snprintf(name, sizeof name, "p%u", added);
        status = add_param(&m, name, UINT64_C(1) << 47);
        if (status) break;
    }
    RANK_CHECK(added == 8 && status == SLUICE_ERR_ARGUMENT && strstr(sluice_last_error(), "\"p8\""));
    RANK_CHECK(sluice_runtime_commit(m.rt) != SLUICE_OK); /* even the allowed sum is more memory than there is */
    return end(&m);
}

static int sums_of_bytes(int rank, int size, void *context)
{
    (void)rank, (void)size, (void)context;
    static const uint64_t too_many[] = {UINT64_MAX, UINT64_MAX - 63, UINT64_C(1) << 63, (UINT64_C(1) << 54) - 99};
    model m;
    sluice_activation *a;
    sluice_workspace *w;
    if (begin(&m)) return 1;
    RANK_CHECK(!add_param(&m, "w", 1000));
    sluice_activation_desc activation =
        SLUICE_INIT(sluice_activation_desc, .name = "a", .bytes = 100, .last = SLUICE_BACKWARD);
    sluice_workspace_desc workspace = SLUICE_INIT(sluice_workspace_desc, .name = "k", .bytes = 100, .last = UINT32_MAX);
    RANK_CHECK(!sluice_activation_add(m.layer, &activation, &a));
    RANK_CHECK(!sluice_workspace_add(m.layer, &workspace, &w));
    RANK_CHECK(!sluice_runtime_reserve(m.rt, "own", 100));
    for (size_t i = 0; i < sizeof too_many / sizeof *too_many; i++) {
        activation.bytes = workspace.bytes = too_many[i];
        RANK_CHECK(sluice_activation_add(m.layer, &activation, &a) == SLUICE_ERR_ARGUMENT);
        RANK_CHECK(strstr(sluice_last_error(), "layer \"l\": activation \"a\" has"));
        RANK_CHECK(sluice_workspace_add(m.layer, &workspace, &w) == SLUICE_ERR_ARGUMENT);
        RANK_CHECK(strstr(sluice_last_error(), "layer \"l\": workspace \"k\" has"));
        RANK_CHECK(sluice_runtime_reserve(m.rt, "own", too_many[i]) == SLUICE_ERR_ARGUMENT);
        RANK_CHECK(strstr(sluice_last_error(), "reserve \"own\""));
    }
    if (commit_the_rest(&m)) return 1;
    return end(&m);
}

/* The rows of a table: their product must stay below the parameter's count. */
static int sums_of_rows(int rank, int size, void *context)
{
    (void)rank, (void)size, (void)context;
    model m;
    sluice_param *param;
    if (begin(&m)) return 1;
    sluice_param_desc desc = SLUICE_INIT(sluice_param_desc, .name = "t", .count = 64, .tied = true, .row_elements = 8,
                                         .most_rows = UINT64_MAX / 4);
    RANK_CHECK(!sluice_param_add(m.layer, &desc, &param)); /* most_rows counts as all 8 rows */
    desc.name = "u";
    desc.row_elements = UINT64_MAX - 7;
    RANK_CHECK(sluice_param_add(m.layer, &desc, &param) == SLUICE_ERR_ARGUMENT);
    RANK_CHECK(strstr(sluice_last_error(), "parameter \"u\""));
    if (commit_the_rest(&m)) return 1;
    return end(&m);
}

static void run(rank_function function)
{
    assert_int_equal(run_ranks(1, function, NULL, 60), 0);
}

static void parameters(void **state)
{
    (void)state;
    run(sums_of_parameters);
    run(many_large_ones);
}

static void activations_workspaces_and_reserve(void **state)
{
    (void)state;
    run(sums_of_bytes);
}

static void rows(void **state)
{
    (void)state;
    run(sums_of_rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameters),
        cmocka_unit_test(activations_workspaces_and_reserve),
        cmocka_unit_test(rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
