/* A parameter of which a layer reads some rows, as a program meets it: which registrations and calls of sluice_rows_set
 * are refused, when rows may be set, which places and tables follow, and what becomes of a gradient that is not finite.
 * Splitting the parameter from its other use changes values by rounding alone, and a compressed optimizer then averages
 * it. */
#include "tests/support/ranks.h"

#include <math.h>
#include <sluice/sluice.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

enum { ROW = 5, ROWS = 70, MOST = 6, LOOKED_UP = 9, PLAIN = 9, MICRO_BATCHES = 2 };

typedef struct {
    sluice_world *world;
    sluice_runtime *rt;
    sluice_layer *embed, *head;
    sluice_param *table, *plain;
} model;

/* A user's own optimizer. */
static sluice_status descend(const sluice_update *u, void *context)
{
    const float *gradient = u->gradient;
    (void)context;
    for (size_t i = 0; i < u->count; i++) u->value[i] -= (float)u->learning_rate * gradient[i];
    return SLUICE_OK;
}

static const sluice_optimizer descent = {.struct_size = sizeof(sluice_optimizer), .name = "descent", .update = descend};

typedef struct {
    sluice_tied tied;
    sluice_nan_policy nan;
    const char *strategy, *schedule, *of_table; /* NULL: fsdp, serial, the same as `strategy` */
    const char *optimizer; /* NULL: plain descent; else an optimizer that compresses from step 6 on */
    bool compat;
} setting;

static int create(model *w, const setting *t)
{
    sluice_config config;
    sluice_config_init(&config);
    config.strategy = t->strategy ? t->strategy : "fsdp";
    config.schedule = t->schedule ? t->schedule : "serial";
    config.tied = t->tied;
    config.nan = t->nan;
    config.optimizer = t->optimizer ? NULL : &descent;
    if (t->optimizer) config.optimizer_name = t->optimizer;
    config.onebit.compat = t->compat;
    config.onebit.freeze_step = config.onebit.var_freeze_step = 5;
    config.micro_batches = MICRO_BATCHES;
    config.block_bytes = 256;
    RANK_CHECK(!sluice_world_create(NULL, &w->world));
    RANK_CHECK(!sluice_runtime_create(w->world, &config, &w->rt));
    RANK_CHECK(!sluice_layer_add(w->rt, "embed", &w->embed));
    RANK_CHECK(!sluice_layer_add(w->rt, "head", &w->head));
    if (t->of_table) RANK_CHECK(!sluice_layer_strategy(w->embed, t->of_table));
    return 0;
}

static sluice_param_desc table_desc(void)
{
    return (sluice_param_desc){.struct_size = sizeof(sluice_param_desc),
                               .name = "table",
                               .count = ROWS * ROW,
                               .tied = true,
                               .row_elements = ROW,
                               .most_rows = MOST};
}

static int build(model *w, const setting *t)
{
    if (create(w, t)) return 1;
    sluice_param_desc desc = table_desc();
    RANK_CHECK(!sluice_param_add(w->embed, &desc, &w->table));
    RANK_CHECK(!sluice_param_add(w->head, &SLUICE_INIT(sluice_param_desc, .name = "plain", .count = PLAIN), &w->plain));
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
    if (create(&w, &(setting){.tied = SLUICE_TIED_JOINT})) return 1;
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

/* Each rank gives another row_elements or most_rows. */
static int another_table(int rank, int size, void *context)
{
    (void)size;
    const bool *most = context;
    model w;
    if (create(&w, &(setting){.tied = SLUICE_TIED_JOINT})) return 1;
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
    if (create(&w, &(setting){.tied = rank ? SLUICE_TIED_SPLIT : SLUICE_TIED_JOINT})) return 1;
    sluice_param_desc desc = table_desc();
    RANK_CHECK(!sluice_param_add(w.embed, &desc, &w.table));
    RANK_CHECK(refused(sluice_runtime_commit(w.rt), SLUICE_ERR_MISMATCH, "tied"));
    return destroy(&w);
}

static const int32_t looked_up[LOOKED_UP] = {3, 69, 3, 0, 11, 12, 69, 3, 10};

/* The layer's table must hold the rows that were asked for at the places that were returned. */
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
    RANK_CHECK(refused(sluice_rows_set(w->table, NULL, 0, NULL), SLUICE_ERR_ORDER, "before a micro-batch"));
    RANK_CHECK(!sluice_forward_end(w->head));
    return 0;
}

static int backward(model *w)
{
    RANK_CHECK(refused(sluice_rows_set(w->table, NULL, 0, NULL), SLUICE_ERR_ORDER, "before a micro-batch"));
    RANK_CHECK(!sluice_backward_begin(w->head) && !sluice_backward_end(w->head));
    RANK_CHECK(!sluice_backward_begin(w->embed) && !sluice_backward_end(w->embed));
    return 0;
}

/* None of these calls changes anything: the right call comes after them. */
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
    if (build(&w, context)) return 1;
    for (int step = 0; step < 3; step++) {
        RANK_CHECK(refused(sluice_rows_set(w.table, NULL, 0, NULL), SLUICE_ERR_ORDER, "before a micro-batch"));
        RANK_CHECK(!sluice_step_begin(w.rt, &SLUICE_INIT(sluice_step_options, .learning_rate = 0)));
        for (int m = 0; m < MICRO_BATCHES; m++)
            if (wrong_rows(&w) || set_rows(&w, places) || forward(&w, places) || backward(&w)) return 1;
        RANK_CHECK(refused(sluice_rows_set(w.table, NULL, 0, NULL), SLUICE_ERR_ORDER, "before a micro-batch"));
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
    int where; /* the micro-batch of a step; -1 and -2: the first and the second forward of an evaluation */
} missing;

static int rows_missing(int rank, int size, void *context)
{
    (void)rank, (void)size;
    const missing *at = context;
    model w;
    int32_t places[LOOKED_UP];
    if (build(&w, &(setting){.tied = at->tied})) return 1;
    if (at->where < 0)
        RANK_CHECK(!sluice_evaluate_begin(w.rt));
    else
        RANK_CHECK(!sluice_step_begin(w.rt, &SLUICE_INIT(sluice_step_options)));
    if (at->where == -2 && (set_rows(&w, places) || forward(&w, places))) return 1;
    for (int m = 0; m < at->where; m++)
        if (set_rows(&w, places) || forward(&w, places) || backward(&w)) return 1;
    RANK_CHECK(refused(sluice_forward_begin(w.embed), SLUICE_ERR_ORDER, "\"embed.table\""));
    /* The runtime stays failed. */
    RANK_CHECK(refused(sluice_rows_set(w.table, NULL, 0, NULL), SLUICE_ERR_ORDER, "sluice_rows_set"));
    return destroy(&w);
}

/* ---- Training: each rank looks other rows up and pulls them to -1, while the head pulls all rows to 1 ---- */

enum { TRAINED_STEPS = 50 };

static int train_forward(model *w, uint64_t key, int32_t *places)
{
    int32_t rows[LOOKED_UP];
    for (int i = 0; i < LOOKED_UP; i++) rows[i] = (int32_t)((key * 7 + (uint64_t)(i % MOST) * key) % ROWS);
    RANK_CHECK(!sluice_rows_set(w->table, rows, LOOKED_UP, places));
    RANK_CHECK(!sluice_forward_begin(w->embed) && !sluice_forward_end(w->embed));
    RANK_CHECK(!sluice_forward_begin(w->head) && !sluice_forward_end(w->head));
    return 0;
}

static int train_backward(model *w, const int32_t *places, bool poison)
{
    RANK_CHECK(!sluice_backward_begin(w->head));
    const float *value = sluice_param_value(w->table);
    float *gradient = sluice_param_gradient(w->table);
    for (int i = 0; i < ROWS * ROW; i++) gradient[i] += value[i] - 1;
    gradient = sluice_param_gradient(w->plain);
    for (int i = 0; i < PLAIN; i++) gradient[i] += (float)(places[i] - i);
    RANK_CHECK(!sluice_backward_end(w->head) && !sluice_backward_begin(w->embed));
    value = sluice_param_value(w->table);
    gradient = sluice_param_gradient(w->table);
    RANK_CHECK(value && gradient);
    for (int i = 0; i < LOOKED_UP * ROW; i++) {
        int at = places[i / ROW] * ROW + i % ROW;
        gradient[at] += 0.3f * (value[at] + 1);
    }
    if (poison) gradient[places[LOOKED_UP - 1] * ROW] = NAN;
    RANK_CHECK(!sluice_backward_end(w->embed));
    return 0;
}

/* Runs a step up to its step_end, which the caller calls. */
static int train(model *w, int rank, uint64_t step, bool poison)
{
    int32_t places[LOOKED_UP];
    RANK_CHECK(!sluice_step_begin(w->rt, &SLUICE_INIT(sluice_step_options, .learning_rate = 0.1, .exchange = true)));
    for (int m = 0; m < MICRO_BATCHES; m++)
        if (train_forward(w, 1 + step * 17 + (uint64_t)(rank * 5 + m), places) ||
            train_backward(w, places, poison && m == 0))
            return 1;
    return 0;
}

static int read_table(model *w, float *values)
{
    RANK_CHECK(!sluice_param_read(w->table, 0, ROWS * ROW, values));
    return 0;
}

/* Split and joint tables must move away from their first values, and agree but for rounding. */
static int split_or_joint(int rank, int size, void *context)
{
    const setting *t = context;
    float values[2][ROWS * ROW];
    (void)size;
    for (int split = 0; split < 2; split++) {
        model w;
        setting other = *t;
        other.tied = split ? SLUICE_TIED_SPLIT : SLUICE_TIED_JOINT;
        if (build(&w, &other)) return 1;
        for (uint64_t step = 1; step <= TRAINED_STEPS; step++)
            if (train(&w, rank, step, false) || sluice_step_end(w.rt, NULL)) return 1;
        if (read_table(&w, values[split])) return 1;
        destroy(&w);
    }
    int equal = 0;
    for (int i = 0; i < ROWS * ROW; i++) {
        RANK_CHECK(fabsf(values[0][i] - values[1][i]) <= 1e-4f * (1 + fabsf(values[0][i])));
        RANK_CHECK(i < 100 || fabsf(values[0][i] - (float)i) > 1);
        equal += values[0][i] == values[1][i];
    }
    RANK_CHECK(equal < ROWS * ROW); /* otherwise nothing was split */
    return 0;
}

static int weights_of(const setting *t, int rank, char hash[65])
{
    model w;
    sluice_step_report report = SLUICE_INIT(sluice_step_report);
    if (build(&w, t)) return 1;
    for (uint64_t step = 1; step <= 15; step++)
        if (train(&w, rank, step, false) || sluice_step_end(w.rt, &report)) return 1;
    RANK_CHECK(report.compressed);
    RANK_CHECK(!sluice_runtime_weights_sha256(w.rt, hash));
    sluice_memory_report memory = SLUICE_INIT(sluice_memory_report);
    RANK_CHECK(!sluice_runtime_memory(w.rt, &memory) && memory.peak_bytes == memory.planned_bytes);
    return destroy(&w);
}

/* The table is never onebit: whichever strategy it is asked to have, it ends the same, next to a layer that is
 * onebit. */
static int compressed(int rank, int size, void *context)
{
    static const char *const of_table[] = {NULL, "dp", "oss", "sdp", "fsdp", "onebit"};
    static const char *const schedules[] = {"serial", "one_ahead", "bucketed", "random"};
    setting t = *(const setting *)context;
    char expected[65], hash[65];
    (void)size;
    for (int s = 0; s < 6; s++) {
        t.of_table = t.compat ? NULL : of_table[s]; /* in compat there is one unit, which has one strategy */
        t.schedule = schedules[s % 4];
        if (weights_of(&t, rank, s ? hash : expected)) return 1;
        RANK_CHECK(!s || !strcmp(hash, expected));
    }
    return 0;
}

/* A gradient that is not finite lies in a row that only the last rank looks up. */
static int not_finite(int rank, int size, void *context)
{
    const setting *t = context;
    float before[ROWS * ROW], after[ROWS * ROW];
    sluice_step_report report = SLUICE_INIT(sluice_step_report);
    model w;
    if (build(&w, t)) return 1;
    for (uint64_t step = 1; step <= 2; step++)
        if (train(&w, rank, step, false) || sluice_step_end(w.rt, NULL)) return 1;
    if (read_table(&w, before) || train(&w, rank, 3, rank == size - 1)) return 1;
    sluice_status status = sluice_step_end(w.rt, &report);
    if (t->nan == SLUICE_NAN_STOP) {
        RANK_CHECK(refused(status, SLUICE_ERR_NON_FINITE, "\"embed.table\""));
        return destroy(&w);
    }
    RANK_CHECK(!status && report.skipped);
    if (read_table(&w, after)) return 1;
    RANK_CHECK(!memcmp(before, after, sizeof after));
    RANK_CHECK(!train(&w, rank, 3, false) && !sluice_step_end(w.rt, &report) && !report.skipped);
    if (read_table(&w, after)) return 1;
    for (int i = 0; i < ROWS * ROW; i++) RANK_CHECK(isfinite(after[i]));
    RANK_CHECK(memcmp(before, after, sizeof after));
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

static const sluice_tied settings[] = {SLUICE_TIED_JOINT, SLUICE_TIED_SPLIT};
enum { SETTINGS = sizeof settings / sizeof *settings };

static void rows_are_set_for_each_micro_batch(void **state)
{
    (void)state;
    for (int s = 0; s < SETTINGS; s++)
        for (int ranks = 1; ranks <= 2; ranks++)
            assert_int_equal(run_ranks(ranks, right_and_wrong_calls, &(setting){.tied = settings[s]}, 60), 0);
}

static void missing_rows_are_an_error(void **state)
{
    (void)state;
    for (int s = 0; s < SETTINGS; s++)
        for (int where = -2; where < MICRO_BATCHES; where++)
            assert_int_equal(run_ranks(1, rows_missing, &(missing){settings[s], where}, 60), 0);
}

static const char *const strategies[] = {"dp", "oss", "sdp", "fsdp"};

static void splitting_changes_rounding_alone(void **state)
{
    (void)state;
    for (int s = 0; s < 4; s++)
        assert_int_equal(run_ranks(1 + s % 3, split_or_joint, &(setting){.strategy = strategies[s]}, 60), 0);
}

static void what_is_not_finite_is_skipped_or_named(void **state)
{
    (void)state;
    for (int s = 0; s < 4; s++)
        for (int tied = 0; tied < SETTINGS; tied++) {
            setting stop = {.tied = settings[tied], .nan = SLUICE_NAN_STOP, .strategy = strategies[s]}, skip = stop;
            skip.nan = SLUICE_NAN_SKIP;
            assert_int_equal(run_ranks(1 + s % 3, not_finite, &stop, 60), 0);
            assert_int_equal(run_ranks(1 + s % 3, not_finite, &skip, 60), 0);
        }
}

static void compressed_optimizers_average_what_is_split(void **state)
{
    (void)state;
    static const char *const optimizers[] = {"onebit_adam", "onebit_lamb", "zero_one_adam", "onebit_lamb"};
    for (int o = 0; o < 4; o++)
        assert_int_equal(run_ranks(2 + o % 2, compressed,
                                   &(setting){.tied = SLUICE_TIED_SPLIT,
                                              .strategy = "onebit",
                                              .optimizer = optimizers[o],
                                              .compat = o == 3},
                                   60),
                         0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_registrations_are_refused),
        cmocka_unit_test(rows_are_set_for_each_micro_batch),
        cmocka_unit_test(missing_rows_are_an_error),
        cmocka_unit_test(splitting_changes_rounding_alone),
        cmocka_unit_test(what_is_not_finite_is_skipped_or_named),
        cmocka_unit_test(compressed_optimizers_average_what_is_split),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
