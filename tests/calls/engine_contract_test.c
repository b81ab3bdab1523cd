/* The hook API tells a program what is wrong: a call that returns no address says why, and a wrong call's line says
 * what to do. */
#include "tests/support/ranks.h"

#include <math.h>
#include <sluice/sluice.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

enum { LIMIT_S = 120 };

typedef struct {
    sluice_world *world;
    sluice_runtime *rt;
    sluice_layer *layer[3];
    sluice_param *w[3];
} program;

static int create(program *p, sluice_config *config)
{
    static const char *const names[] = {"first", "second", "third"};
    RANK_CHECK(!sluice_world_create(NULL, &p->world));
    RANK_CHECK(!sluice_runtime_create(p->world, config, &p->rt));
    for (int l = 0; l < 3; l++) {
        RANK_CHECK(!sluice_layer_add(p->rt, names[l], &p->layer[l]));
        RANK_CHECK(
            !sluice_param_add(p->layer[l], &SLUICE_INIT(sluice_param_desc, .name = "w", .count = 100), &p->w[l]));
    }
    return 0;
}

static void destroy(program *p)
{
    sluice_runtime_destroy(p->rt);
    sluice_world_destroy(p->world);
}

/* Returns a file that gets what is written to standard error from here on. */
static FILE *listen_to_stderr(void)
{
    FILE *heard = tmpfile();
    if (heard) dup2(fileno(heard), STDERR_FILENO);
    return heard;
}

static int count_heard(FILE *heard, const char *words)
{
    static char text[1 << 16];
    int count = 0;
    rewind(heard);
    text[fread(text, 1, sizeof text - 1, heard)] = 0;
    for (const char *at = text; (at = strstr(at, words)); at++) count++;
    return count;
}

/* A program that uses the address dies before it can look at sluice_last_error, so the line is on standard error
 * too. */
static int null_says_why(int rank, int size, void *context)
{
    (void)rank, (void)size, (void)context;
    program p = {0};
    sluice_config config;
    sluice_config_init(&config);
    sluice_activation *hidden;
    sluice_workspace *space;
    const sluice_activation_desc desc = SLUICE_INIT(sluice_activation_desc, .name = "hidden", .bytes = 64);
    if (create(&p, &config)) return 1;
    RANK_CHECK(!sluice_activation_add(p.layer[0], &desc, &hidden));
    RANK_CHECK(
        !sluice_workspace_add(p.layer[0], &SLUICE_INIT(sluice_workspace_desc, .name = "space", .bytes = 64), &space));
    FILE *heard = listen_to_stderr();
    RANK_CHECK(heard && !sluice_activation_data(hidden));
    RANK_CHECK(count_heard(heard, "activation \"first.hidden\": it has an address after commit; this is before") == 1);
    RANK_CHECK(!sluice_runtime_commit(p.rt) && sluice_activation_data(hidden));
    for (int i = 0; i < 3; i++) {
        RANK_CHECK(!sluice_param_value(p.w[0]) && !sluice_param_gradient(p.w[1]));
        RANK_CHECK(!sluice_workspace_data(space) && !sluice_param_value(NULL) && !sluice_param_gradient(NULL));
    }
    RANK_CHECK(count_heard(heard, "error: parameter \"first.w\": its value is valid only") == 1);
    RANK_CHECK(count_heard(heard, "error: parameter \"second.w\": its gradient is valid only") == 1);
    RANK_CHECK(count_heard(heard, "error: workspace \"first.space\": it is valid only in the forward") == 1);
    RANK_CHECK(count_heard(heard, "error: param_value: NULL was given") +
                   count_heard(heard, "error: param_gradient: NULL was given") ==
               1);
    RANK_CHECK(count_heard(heard, "this is between steps") == 3);
    RANK_CHECK(!sluice_step_begin(p.rt, &SLUICE_INIT(sluice_step_options, .learning_rate = 1)));
    RANK_CHECK(!sluice_forward_begin(p.layer[0]) && !sluice_param_value(p.w[2]));
    RANK_CHECK(count_heard(heard, "error: parameter \"third.w\": layer \"first\", which runs now, does not use it") ==
               1);
    /* A program that ignores statuses hears of the first failure, not of those that follow from it. */
    RANK_CHECK(sluice_backward_begin(p.layer[0]) == SLUICE_ERR_ORDER && !sluice_param_gradient(p.w[0]));
    RANK_CHECK(strstr(sluice_last_error(), "a call before this one failed: layer \"first\": backward_begin called"));
    destroy(&p);
    return 0;
}

static void an_address_that_is_not_there_says_why(void **state)
{
    (void)state;
    assert_int_equal(run_ranks(1, null_says_why, NULL, LIMIT_S), 0);
}

/* Lines use the names of the C program, and say what to do. */
static int lines_suit_a_program(int rank, int size, void *context)
{
    (void)rank, (void)size, (void)context;
    program p = {0};
    float values[100] = {0};
    sluice_config config = {0};
    RANK_CHECK(!sluice_world_create(NULL, &p.world));
    RANK_CHECK(sluice_runtime_create(p.world, &config, &p.rt) == SLUICE_ERR_ARGUMENT);
    RANK_CHECK(!strcmp(sluice_last_error(), "sluice_config.struct_size is 0; begin with sluice_config_init"));
    sluice_config_init(&config);
    config.micro_batches = 0;
    RANK_CHECK(sluice_runtime_create(p.world, &config, &p.rt) == SLUICE_ERR_ARGUMENT);
    RANK_CHECK(strstr(sluice_last_error(), "micro_batches is 0") && strstr(sluice_last_error(), "sluice_config_init"));
    sluice_world_destroy(p.world);

    sluice_config_init(&config);
    config.budget_bytes = 1000;
    if (create(&p, &config)) return 1;
    RANK_CHECK(sluice_param_use(p.layer[2], p.w[1]) == SLUICE_ERR_ARGUMENT);
    RANK_CHECK(strstr(sluice_last_error(), "cannot use \"second.w\": it was not added as tied; set .tied"));
    RANK_CHECK(sluice_param_write(p.w[1], 0, 100, values) == SLUICE_ERR_ORDER);
    RANK_CHECK(strstr(sluice_last_error(), "param_write of \"second.w\": before commit; call sluice_runtime_commit"));
    RANK_CHECK(sluice_runtime_commit(p.rt) == SLUICE_ERR_BUDGET);
    const char *least = strstr(sluice_last_error(), "the smallest that works: config.budget_bytes = ");
    RANK_CHECK(least && sscanf(strchr(least, '='), "= %lu", &config.budget_bytes) == 1 && config.budget_bytes > 1000);
    destroy(&p);

    /* The budget that the line names must be enough. */
    if (create(&p, &config)) return 1;
    RANK_CHECK(!sluice_runtime_commit(p.rt));
    RANK_CHECK(sluice_param_write(p.w[1], 50, 100, values) == SLUICE_ERR_ARGUMENT);
    RANK_CHECK(strstr(sluice_last_error(), "param_write of \"second.w\": 100 elements from number 50 on; it has 100"));
    destroy(&p);

    sluice_activation *back;
    const sluice_activation_desc desc =
        SLUICE_INIT(sluice_activation_desc, .name = "back", .bytes = 64, .first = SLUICE_BACKWARD);
    if (create(&p, &config)) return 1;
    RANK_CHECK(!sluice_activation_add(p.layer[1], &desc, &back) && sluice_runtime_commit(p.rt) == SLUICE_ERR_ARGUMENT);
    RANK_CHECK(strstr(sluice_last_error(), "ends, in the forward of \"second\", before it begins, in the backward of"));
    destroy(&p);
    return 0;
}

static void lines_say_what_to_do(void **state)
{
    (void)state;
    assert_int_equal(run_ranks(1, lines_suit_a_program, NULL, LIMIT_S), 0);
}

/* ---- One rank evaluates, the others train ---- */

enum { SAID_OTHERWISE = 3 };

/* Under fsdp the ranks need each other. The rank ends with 0 if its line says that one of them evaluates. */
static int evaluates_alone(int rank, int size, void *context)
{
    (void)size, (void)context;
    program p = {0};
    sluice_config config;
    sluice_config_init(&config);
    config.strategy = "fsdp";
    if (create(&p, &config)) return 1;
    RANK_CHECK(!sluice_runtime_commit(p.rt));
    sluice_status status =
        rank ? sluice_step_begin(p.rt, &SLUICE_INIT(sluice_step_options)) : sluice_evaluate_begin(p.rt);
    for (int l = 0; !status && l < 3; l++) {
        status = sluice_forward_begin(p.layer[l]);
        if (!status) status = sluice_forward_end(p.layer[l]);
    }
    for (int l = 3; !status && rank && l-- > 0;) {
        status = sluice_backward_begin(p.layer[l]);
        if (!status) status = sluice_backward_end(p.layer[l]);
    }
    if (!status) status = rank ? sluice_step_end(p.rt, NULL) : sluice_evaluate_end(p.rt);
    if (!status) status = sluice_runtime_sync(p.rt);
    if (!status) status = sluice_evaluate_begin(p.rt); /* the calls that both ranks make are over */
    if (!status) status = sluice_forward_begin(p.layer[0]);
    RANK_CHECK(status == SLUICE_ERR_MISMATCH);
    int code = strstr(sluice_last_error(), "evaluate_begin") ? 0 : SAID_OTHERWISE;
    if (code) fprintf(stderr, "rank %d: %s\n", rank, sluice_last_error());
    wait_ms(1000); /* the other rank hears of this before it hears that this one has left */
    destroy(&p);
    return code;
}

static void who_evaluates_alone_is_told(void **state)
{
    (void)state;
    int codes[RANKS_MAX];
    run_ranks_codes(2, evaluates_alone, NULL, LIMIT_S, codes);
    assert_true(codes[0] == 0 || codes[1] == 0);
    for (int r = 0; r < 2; r++) assert_true(codes[r] == 0 || codes[r] == SAID_OTHERWISE);
}

/* ---- Programs that were built with other headers ---- */

/* An older program's structs have the same beginning as ours, and no more. */
typedef struct {
    size_t struct_size;
    const char *name;
    uint64_t bytes;
} older_activation;

typedef struct {
    sluice_param_desc known;
    uint64_t further;
} newer_param;

typedef struct {
    struct {
        size_t struct_size;
        uint64_t step;
    } report;
    double next;
} older_report;

static int has_other_structs(int rank, int size, void *context)
{
    (void)rank, (void)size, (void)context;
    program p = {0};
    sluice_config config;
    sluice_param *w;
    sluice_activation *out[2];
    newer_param newer = {SLUICE_INIT(sluice_param_desc, .name = "v", .count = 16), 1};
    const older_activation older[2] = {SLUICE_INIT(older_activation, .name = "a", .bytes = 64),
                                       SLUICE_INIT(older_activation, .name = "b", .bytes = 128)};
    older_report report = {{.struct_size = sizeof report.report}, 7};
    sluice_config_init_sized(&config, offsetof(sluice_config, optimizer)); /* what follows keeps its defaults */
    memset(&config.optimizer, 0x55, sizeof config - offsetof(sluice_config, optimizer));
    if (create(&p, &config)) return 1;

    newer.known.struct_size = sizeof newer;
    RANK_CHECK(sluice_param_add(p.layer[0], &newer.known, &w) == SLUICE_ERR_UNSUPPORTED);
    RANK_CHECK(strstr(sluice_last_error(), "built for a newer one"));
    newer.further = 0;
    RANK_CHECK(sluice_param_add(p.layer[0], &newer.known, NULL) == SLUICE_ERR_ARGUMENT);
    RANK_CHECK(!sluice_param_add(p.layer[0], &newer.known, &w) && sluice_param_count(w) == 16);
    newer.known = (sluice_param_desc){.name = "u", .count = 16};
    RANK_CHECK(sluice_param_add(p.layer[0], &newer.known, &w) == SLUICE_ERR_ARGUMENT);
    RANK_CHECK(strstr(sluice_last_error(), "begin with SLUICE_INIT(sluice_param_desc)"));

    RANK_CHECK(!sluice_activations_add(p.layer[0], (const void *)older, 2, out));
    sluice_memory_report memory = SLUICE_INIT(sluice_memory_report), none = {0};
    RANK_CHECK(!sluice_runtime_commit(p.rt) && !sluice_runtime_memory(p.rt, &memory));
    RANK_CHECK(memory.activation_sum_bytes == 64 + 128);
    RANK_CHECK(sluice_runtime_memory(p.rt, &none) == SLUICE_ERR_ARGUMENT);
    RANK_CHECK(sluice_runtime_memory(p.rt, NULL) == SLUICE_ERR_ARGUMENT);

    RANK_CHECK(!sluice_step_begin(p.rt, &SLUICE_INIT(sluice_step_options, .learning_rate = 1)));
    for (int l = 0; l < 3; l++) RANK_CHECK(!sluice_forward_begin(p.layer[l]) && !sluice_forward_end(p.layer[l]));
    for (int l = 3; l-- > 0;) RANK_CHECK(!sluice_backward_begin(p.layer[l]) && !sluice_backward_end(p.layer[l]));
    report.report.struct_size = 0;
    RANK_CHECK(sluice_step_end(p.rt, (void *)&report) == SLUICE_ERR_ARGUMENT); /* and nothing has happened */
    report.report.struct_size = sizeof report.report;
    RANK_CHECK(!sluice_step_end(p.rt, (void *)&report) && report.report.step == 1 && report.next == 7);
    destroy(&p);
    return 0;
}

static void programs_of_other_versions_work(void **state)
{
    (void)state;
    assert_int_equal(run_ranks(1, has_other_structs, NULL, LIMIT_S), 0);
}

/* ---- Activations by array, and layers by handle ---- */

enum { ROOM = 3 };

/* With the check on, an array's content is NaN once its life is over: a's life ends in the third layer, b's in the
 * second, c's in the first, but in an evaluation in the third. */
static int check_lives(program *p, sluice_activation **out)
{
    for (int evaluation = 0; evaluation < 2; evaluation++) {
        RANK_CHECK(
            !(evaluation ? sluice_evaluate_begin(p->rt) : sluice_step_begin(p->rt, &SLUICE_INIT(sluice_step_options))));
        for (int l = 0; l < 3; l++) {
            RANK_CHECK(!sluice_forward_begin(p->layer[l]));
            for (int i = 0; i < ROOM; i++) {
                float *data = sluice_activation_data(out[i]);
                if (!l) data[0] = 1;
                bool lives = l <= 2 - i || (evaluation && i == 2);
                RANK_CHECK(lives ? data[0] == 1 : isnan(data[0]));
            }
            RANK_CHECK(!sluice_forward_end(p->layer[l]));
        }
        for (int l = 3; !evaluation && l-- > 0;)
            RANK_CHECK(!sluice_backward_begin(p->layer[l]) && !sluice_backward_end(p->layer[l]));
        RANK_CHECK(!(evaluation ? sluice_evaluate_end(p->rt) : sluice_step_end(p->rt, NULL)));
    }
    return 0;
}

static int adds_activations(int rank, int size, void *context)
{
    (void)rank, (void)size, (void)context;
    program p = {0}, other = {0};
    sluice_config config;
    sluice_config_init(&config);
    sluice_activation *out[ROOM];
    setenv("SLUICE_ENGINE_CHECK", "1", 1);
    if (create(&p, &config)) return 1;
    RANK_CHECK(!sluice_runtime_create(p.world, &config, &other.rt));
    RANK_CHECK(!sluice_layer_add(other.rt, "first", &other.layer[0]));
    /* Adds an activation that lives to the third layer's forward, given by handle; one given by name; one for its own
     * layer alone. */
    sluice_activation_desc descs[ROOM] = {
        SLUICE_INIT(sluice_activation_desc, .name = "a", .bytes = 64, .last_handle = p.layer[2]),
        SLUICE_INIT(sluice_activation_desc, .name = "b", .bytes = 64, .last_layer = "second"),
        SLUICE_INIT(sluice_activation_desc, .name = "c", .bytes = 64, .last_forward_handle = p.layer[2])};

    descs[2].bytes = 0;
    RANK_CHECK(sluice_activations_add(p.layer[0], descs, ROOM, out) == SLUICE_ERR_ARGUMENT);
    RANK_CHECK(strstr(sluice_last_error(), "\"c\""));
    descs[2].bytes = 64;
    descs[1].last_handle = p.layer[2];
    RANK_CHECK(sluice_activations_add(p.layer[0], descs, ROOM, out) == SLUICE_ERR_ARGUMENT);
    RANK_CHECK(strstr(sluice_last_error(), "\"second\" by name and \"third\" by handle"));
    descs[1].last_handle = other.layer[0];
    descs[1].last_layer = NULL;
    RANK_CHECK(sluice_activations_add(p.layer[0], descs, ROOM, out) == SLUICE_ERR_ARGUMENT);
    RANK_CHECK(strstr(sluice_last_error(), "another runtime's"));
    RANK_CHECK(sluice_activations_add(p.layer[0], NULL, ROOM, out) == SLUICE_ERR_ARGUMENT);
    RANK_CHECK(!sluice_activations_add(p.layer[0], NULL, 0, NULL));
    descs[1].last_handle = p.layer[1];
    RANK_CHECK(!sluice_activations_add(p.layer[0], descs, ROOM, out));

    /* Calls that failed have left nothing: there are only these three. */
    sluice_memory_report report = SLUICE_INIT(sluice_memory_report);
    RANK_CHECK(!sluice_runtime_commit(p.rt) && !sluice_runtime_memory(p.rt, &report));
    RANK_CHECK(report.activation_sum_bytes == 3 * 64);
    if (check_lives(&p, out)) return 1;
    sluice_runtime_destroy(other.rt);
    destroy(&p);
    return 0;
}

static void activations_come_by_array_and_handle(void **state)
{
    (void)state;
    assert_int_equal(run_ranks(1, adds_activations, NULL, LIMIT_S), 0);
}

/* ---- A program that asks what comes next ---- */

/* Runs the slot that the task names, and adds to the gradients. */
static int run_task(program *p, const sluice_task *task)
{
    sluice_task inside = SLUICE_INIT(sluice_task);
    uint32_t l = 0;
    while (p->layer[l] != task->layer) l++;
    RANK_CHECK(task->kind != SLUICE_TASK_FORWARD || !sluice_forward_begin(task->layer));
    RANK_CHECK(task->kind != SLUICE_TASK_RECOMPUTE || !sluice_recompute_begin(task->layer));
    RANK_CHECK(task->kind != SLUICE_TASK_BACKWARD || !sluice_backward_begin(task->layer));
    RANK_CHECK(sluice_step_next(p->rt, &inside) == SLUICE_ERR_ORDER && strstr(sluice_last_error(), "is in its slot"));
    float *gradient = task->kind == SLUICE_TASK_BACKWARD ? sluice_param_gradient(p->w[l]) : NULL;
    for (int i = 0; gradient && i < 100; i++) gradient[i] += (float)(i + 1) * (float)(l + 1 + task->micro_batch);
    RANK_CHECK(task->kind != SLUICE_TASK_FORWARD || !sluice_forward_end(task->layer));
    RANK_CHECK(task->kind != SLUICE_TASK_RECOMPUTE || !sluice_recompute_end(task->layer));
    RANK_CHECK(task->kind != SLUICE_TASK_BACKWARD || !sluice_backward_end(task->layer));
    return 0;
}

/* Walks the layers in the order that the headers promise, and holds each task to it if `asks`. */
static int walk_or_ask(program *p, bool asks)
{
    enum { SLOTS = 2 * 9 };
    sluice_task expected[SLOTS], told = SLUICE_INIT(sluice_task);
    uint32_t count = 0;
    for (uint32_t m = 0; m < 2; m++) {
        for (int l = 0; l < 3; l++)
            expected[count++] = SLUICE_INIT(sluice_task, .micro_batch = m, .layer = p->layer[l]);
        for (int l = 3; l-- > 0;) {
            sluice_task back = SLUICE_INIT(sluice_task, .micro_batch = m, .layer = p->layer[l]);
            back.kind = SLUICE_TASK_RECOMPUTE;
            if (sluice_layer_recomputes(p->layer[l])) expected[count++] = back;
            back.kind = SLUICE_TASK_BACKWARD;
            expected[count++] = back;
        }
    }
    RANK_CHECK(sluice_step_next(p->rt, &told) == SLUICE_ERR_ORDER);
    RANK_CHECK(!sluice_step_begin(p->rt, &SLUICE_INIT(sluice_step_options, .learning_rate = 0.1)));
    for (uint32_t i = 0; i < count; i++) {
        RANK_CHECK(!asks || (!sluice_step_next(p->rt, &told) && !sluice_step_next(p->rt, &told)));
        RANK_CHECK(!asks || (told.kind == expected[i].kind && told.layer == expected[i].layer &&
                             told.micro_batch == expected[i].micro_batch));
        if (run_task(p, asks ? &told : &expected[i])) return 1;
    }
    RANK_CHECK(!sluice_step_next(p->rt, &told) && told.kind == SLUICE_TASK_END && !told.layer && told.micro_batch == 2);
    RANK_CHECK(!sluice_step_end(p->rt, NULL));
    return 0;
}

static int asks_what_comes_next(int rank, int size, void *context)
{
    (void)rank, (void)size, (void)context;
    char hex[2][65];
    for (int asks = 0; asks < 2; asks++) {
        program p = {0};
        sluice_config config;
        sluice_config_init(&config);
        config.micro_batches = 2;
        config.recompute = SLUICE_RECOMPUTE_ALL;
        if (create(&p, &config)) return 1;
        const sluice_activation_desc hidden = SLUICE_INIT(sluice_activation_desc, .name = "hidden", .bytes = 64,
                                                          .last = SLUICE_BACKWARD, .recomputable = true);
        sluice_activation *kept;
        RANK_CHECK(!sluice_layer_can_recompute(p.layer[1], true));
        RANK_CHECK(!sluice_activation_add(p.layer[1], &hidden, &kept) && !sluice_runtime_commit(p.rt));
        RANK_CHECK(sluice_layer_recomputes(p.layer[1]));
        for (int step = 0; step < 3; step++)
            if (walk_or_ask(&p, asks)) return 1;
        RANK_CHECK(!sluice_runtime_weights_sha256(p.rt, hex[asks]));
        destroy(&p);
    }
    RANK_CHECK(!strcmp(hex[0], hex[1]));
    return 0;
}

static void programs_may_ask_what_comes_next(void **state)
{
    (void)state;
    assert_int_equal(run_ranks(1, asks_what_comes_next, NULL, LIMIT_S), 0);
    assert_int_equal(run_ranks(2, asks_what_comes_next, NULL, LIMIT_S), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_address_that_is_not_there_says_why), cmocka_unit_test(lines_say_what_to_do),
        cmocka_unit_test(who_evaluates_alone_is_told),           cmocka_unit_test(programs_of_other_versions_work),
        cmocka_unit_test(activations_come_by_array_and_handle),  cmocka_unit_test(programs_may_ask_what_comes_next)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
