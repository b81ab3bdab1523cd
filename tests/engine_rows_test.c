/* A parameter of which a layer reads some rows, as a binary meets it: what registration and sluice_rows_set refuse,
 * when rows may be set, and what places and tables then are. */
#include "tests/ranks.h"

#include <sluice/sluice.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

enum { ROW = 5, ROWS = 70, MOST = 6, LOOKED_UP = 9, MICRO_BATCHES = 2 };

typedef struct {
    sluice_world *world;
    sluice_runtime *rt;
    sluice_layer *embed, *head;
    sluice_param *table, *plain;
} model;

static int create(model *w, sluice_tied tied)
{
    sluice_config config;
    sluice_config_init(&config);
    config.strategy = "fsdp";
    config.schedule = "serial";
    config.tied = tied;
    config.micro_batches = MICRO_BATCHES;
    config.block_bytes = 256;
    RANK_CHECK(!sluice_world_create(NULL, &w->world));
    RANK_CHECK(!sluice_runtime_create(w->world, &config, &w->rt));
    RANK_CHECK(!sluice_layer_add(w->rt, "embed", &w->embed));
    RANK_CHECK(!sluice_layer_add(w->rt, "head", &w->head));
    return 0;
}

static sluice_param_desc table_desc(void)
{
    return (sluice_param_desc){
        .name = "table", .count = ROWS * ROW, .tied = true, .row_elements = ROW, .most_rows = MOST};
}

static int build(model *w, sluice_tied tied)
{
    if (create(w, tied)) return 1;
    sluice_param_desc desc = table_desc();
    RANK_CHECK(!sluice_param_add(w->embed, &desc, &w->table));
    RANK_CHECK(!sluice_param_add(w->head, &(sluice_param_desc){.name = "plain", .count = 9}, &w->plain));
    RANK_CHECK(!sluice_param_use(w->head, w->table));
    RANK_CHECK(sluice_rows_set(w->table, NULL, 0, NULL) == SLUICE_ERR_ORDER);
    RANK_CHECK(!sluice_runtime_commit(w->rt));
    float values[ROWS * ROW];
    for (int i = 0; i < ROWS * ROW; i++) values[i] = (float)i;
    RANK_CHECK(!sluice_param_write(w->table, 0, ROWS * ROW, values));
    return 0;
}

static int destroy(model *w)
{
    sluice_runtime_destroy(w->rt);
    sluice_world_destroy(w->world);
    return 0;
}

static bool refused(sluice_status status, sluice_status expected, const char *words)
{
    bool right = status == expected && strstr(sluice_last_error(), words);
    if (!right) fprintf(stderr, "%d, expected %d with \"%s\": %s\n", status, expected, words, sluice_last_error());
    return right;
}

static int bad_registrations(int rank, int size, void *context)
{
    (void)rank, (void)size, (void)context;
    model w;
    sluice_param *param;
    if (create(&w, SLUICE_TIED_JOINT)) return 1;
    const sluice_param_desc good = table_desc();
    sluice_param_desc desc = good;
    desc.tied = false;
    RANK_CHECK(refused(sluice_param_add(w.embed, &desc, &param), SLUICE_ERR_ARGUMENT, "tied"));
    desc = good;
    desc.frozen = true;
    RANK_CHECK(refused(sluice_param_add(w.embed, &desc, &param), SLUICE_ERR_ARGUMENT, "trained"));
    desc = good;
    desc.most_rows = 0;
    RANK_CHECK(refused(sluice_param_add(w.embed, &desc, &param), SLUICE_ERR_ARGUMENT, "most_rows 0"));
    desc = good;
    desc.row_elements = 0;
    RANK_CHECK(refused(sluice_param_add(w.embed, &desc, &param), SLUICE_ERR_ARGUMENT, "row_elements 0"));
    desc = good;
    desc.count++;
    RANK_CHECK(refused(sluice_param_add(w.embed, &desc, &param), SLUICE_ERR_ARGUMENT, "no whole number of rows"));
    desc = good;
    desc.row_elements = 1;
    desc.count = (uint64_t)1 << 32;
    RANK_CHECK(refused(sluice_param_add(w.embed, &desc, &param), SLUICE_ERR_ARGUMENT, "2^31"));
    return destroy(&w);
}

/* Every rank gives another row_elements or most_rows. */
static int another_table(int rank, int size, void *context)
{
    (void)size;
    const bool *most = context;
    model w;
    if (create(&w, SLUICE_TIED_JOINT)) return 1;
    sluice_param_desc desc = table_desc();
    if (*most)
        desc.most_rows += (uint64_t)rank;
    else
        desc.row_elements = rank ? 1 : ROW;
    RANK_CHECK(!sluice_param_add(w.embed, &desc, &w.table));
    RANK_CHECK(refused(sluice_runtime_commit(w.rt), SLUICE_ERR_MISMATCH, "\"embed\""));
    return destroy(&w);
}

static int other_tied(int rank, int size, void *context)
{
    (void)size, (void)context;
    model w;
    if (create(&w, rank ? SLUICE_TIED_SPLIT : SLUICE_TIED_JOINT)) return 1;
    sluice_param_desc desc = table_desc();
    RANK_CHECK(!sluice_param_add(w.embed, &desc, &w.table));
    RANK_CHECK(refused(sluice_runtime_commit(w.rt), SLUICE_ERR_MISMATCH, "tied"));
    return destroy(&w);
}

static const int32_t looked_up[LOOKED_UP] = {3, 69, 3, 0, 11, 12, 69, 3, 10};

/* The layer's table holds what was asked for where places say so. */
static int check_table(model *w, const int32_t *places)
{
    const float *table = sluice_param_value(w->table);
    RANK_CHECK(table);
    for (int i = 0; i < LOOKED_UP; i++)
        for (int e = 0; e < ROW; e++) RANK_CHECK(table[places[i] * ROW + e] == (float)(looked_up[i] * ROW + e));
    return 0;
}

static int forward(model *w, const int32_t *places)
{
    RANK_CHECK(!sluice_forward_begin(w->embed));
    if (check_table(w, places)) return 1;
    RANK_CHECK(!sluice_forward_end(w->embed));
    RANK_CHECK(!sluice_forward_begin(w->head));
    const float *whole = sluice_param_value(w->table);
    for (int i = 0; i < ROWS * ROW; i++) RANK_CHECK(whole[i] == (float)i);
    RANK_CHECK(refused(sluice_rows_set(w->table, NULL, 0, NULL), SLUICE_ERR_ORDER, "in front of a micro-batch"));
    RANK_CHECK(!sluice_forward_end(w->head));
    return 0;
}

static int backward(model *w)
{
    RANK_CHECK(refused(sluice_rows_set(w->table, NULL, 0, NULL), SLUICE_ERR_ORDER, "in front of a micro-batch"));
    RANK_CHECK(!sluice_backward_begin(w->head) && !sluice_backward_end(w->head));
    RANK_CHECK(!sluice_backward_begin(w->embed) && !sluice_backward_end(w->embed));
    return 0;
}

/* None of these changes anything: the right call comes behind them. */
static int wrong_rows(model *w)
{
    int32_t places[LOOKED_UP] = {0};
    const int32_t below[] = {1, -1}, above[] = {0, 1, ROWS}, many[] = {1, 2, 3, 4, 5, 6, 7};
    RANK_CHECK(refused(sluice_rows_set(NULL, looked_up, 1, places), SLUICE_ERR_ARGUMENT, "rows_set"));
    RANK_CHECK(refused(sluice_rows_set(w->plain, looked_up, 1, places), SLUICE_ERR_ARGUMENT, "without row_elements"));
    RANK_CHECK(refused(sluice_rows_set(w->table, below, 2, places), SLUICE_ERR_ARGUMENT, "number 1 is row -1"));
    RANK_CHECK(refused(sluice_rows_set(w->table, above, 3, places), SLUICE_ERR_ARGUMENT, "rows 0 to 69"));
    RANK_CHECK(refused(sluice_rows_set(w->table, many, 7, places), SLUICE_ERR_ARGUMENT, "more than 6 different"));
    RANK_CHECK(refused(sluice_rows_set(w->table, NULL, 1, places), SLUICE_ERR_ARGUMENT, "no rows"));
    RANK_CHECK(refused(sluice_rows_set(w->table, looked_up, 1, NULL), SLUICE_ERR_ARGUMENT, "no places"));
    for (int i = 0; i < LOOKED_UP; i++) RANK_CHECK(!places[i]);
    return 0;
}

static int set_rows(model *w, int32_t *places)
{
    memcpy(places, looked_up, sizeof looked_up);
    RANK_CHECK(!sluice_rows_set(w->table, places, LOOKED_UP, places));
    RANK_CHECK(refused(sluice_rows_set(w->table, places, LOOKED_UP, places), SLUICE_ERR_ORDER, "already"));
    return 0;
}

static int right_and_wrong_calls(int rank, int size, void *context)
{
    (void)rank, (void)size;
    model w;
    int32_t places[LOOKED_UP];
    if (build(&w, *(sluice_tied *)context)) return 1;
    for (int step = 0; step < 3; step++) {
        RANK_CHECK(refused(sluice_rows_set(w.table, NULL, 0, NULL), SLUICE_ERR_ORDER, "in front of a micro-batch"));
        RANK_CHECK(!sluice_step_begin(w.rt, &(sluice_step_options){.learning_rate = 0}));
        for (int m = 0; m < MICRO_BATCHES; m++)
            if (wrong_rows(&w) || set_rows(&w, places) || forward(&w, places) || backward(&w)) return 1;
        RANK_CHECK(refused(sluice_rows_set(w.table, NULL, 0, NULL), SLUICE_ERR_ORDER, "in front of a micro-batch"));
        RANK_CHECK(!sluice_step_end(w.rt, NULL));
        RANK_CHECK(!sluice_evaluate_begin(w.rt));
        for (int pass = 0; pass < step; pass++)
            if (wrong_rows(&w) || set_rows(&w, places) || forward(&w, places)) return 1;
        RANK_CHECK(!sluice_evaluate_end(w.rt));
    }
    return destroy(&w);
}

typedef struct {
    sluice_tied tied;
    int where; /* micro-batch of a step; -1 and -2: forward of an evaluation */
} missing;

static int rows_missing(int rank, int size, void *context)
{
    (void)rank, (void)size;
    const missing *at = context;
    model w;
    int32_t places[LOOKED_UP];
    if (build(&w, at->tied)) return 1;
    if (at->where < 0)
        RANK_CHECK(!sluice_evaluate_begin(w.rt));
    else
        RANK_CHECK(!sluice_step_begin(w.rt, &(sluice_step_options){0}));
    if (at->where == -2 && (set_rows(&w, places) || forward(&w, places))) return 1;
    for (int m = 0; m < at->where; m++)
        if (set_rows(&w, places) || forward(&w, places) || backward(&w)) return 1;
    RANK_CHECK(refused(sluice_forward_begin(w.embed), SLUICE_ERR_ORDER, "\"embed.table\""));
    RANK_CHECK(refused(sluice_rows_set(w.table, NULL, 0, NULL), SLUICE_ERR_ORDER, "sluice_rows_set")); /* it stays so */
    return destroy(&w);
}

static void wrong_registrations_are_refused(void **state)
{
    (void)state;
    assert_int_equal(run_ranks(1, bad_registrations, NULL, 30), 0);
    assert_int_equal(run_ranks(2, another_table, &(bool){false}, 30), 0);
    assert_int_equal(run_ranks(2, another_table, &(bool){true}, 30), 0);
    assert_int_equal(run_ranks(2, other_tied, NULL, 30), 0);
}

static const sluice_tied settings[] = {SLUICE_TIED_JOINT};
enum { SETTINGS = sizeof settings / sizeof *settings };

static void rows_are_set_for_each_micro_batch(void **state)
{
    (void)state;
    for (int s = 0; s < SETTINGS; s++)
        for (int ranks = 1; ranks <= 2; ranks++)
            assert_int_equal(run_ranks(ranks, right_and_wrong_calls, (void *)&settings[s], 60), 0);
}

static void missing_rows_are_an_error(void **state)
{
    (void)state;
    for (int s = 0; s < SETTINGS; s++)
        for (int where = -2; where < MICRO_BATCHES; where++)
            assert_int_equal(run_ranks(1 + (where & 1), rows_missing, &(missing){settings[s], where}, 60), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_registrations_are_refused),
        cmocka_unit_test(rows_are_set_for_each_micro_batch),
        cmocka_unit_test(missing_rows_are_an_error),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
