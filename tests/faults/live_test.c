/* No call waits for ever, and every rank names the first cause: budgets that are too small, mistakes of one rank, ranks
 * that take no part. Each rank leaves the status and line that it got in memory that the test shares with it. */
#include "tests/support/ranks.h"
#include "tests/support/scale.h"

#include <sluice/sluice.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>
#include <cmocka.h>

enum { COUNT = 500, LINE_BYTES = 1024, LIMIT_S = 60 };

/* The status and line that a rank got. */
typedef struct {
    sluice_status status;
    char line[LINE_BYTES];
} told;

typedef struct {
    sluice_world *world;
    sluice_runtime *rt;
    sluice_layer *layer[2];
    sluice_param *param[2];
} pair;

static told *told_all; /* [RANKS_MAX], shared */

static void note(int rank, sluice_status status)
{
    told_all[rank].status = status;
    snprintf(told_all[rank].line, LINE_BYTES, "%s", status ? sluice_last_error() : "");
}

/* Stays alive and makes no call until all other ranks have been told something. */
static void idle_until_told(int rank, int size)
{
    for (int r = 0; r < size; r++)
        while (r != rank && !*(volatile sluice_status *)&told_all[r].status) wait_ms(20);
}

static void say_lines(int size)
{
    for (int r = 0; r < size; r++)
        fprintf(stderr, "rank %d: %s: %s\n", r, sluice_status_name(told_all[r].status), told_all[r].line);
}

static void assert_lines(int size, bool good)
{
    if (!good) say_lines(size);
    assert_true(good);
}

/* Tells the leak checker that what a rank holds is no leak: ranks of this test end without a goodbye. */
static void hold_what_you_have(void)
{
#if defined(__SANITIZE_ADDRESS__)
    __lsan_disable();
#endif
}

static int make(pair *p, const sluice_config *config)
{
    hold_what_you_have();
    const char *names[] = {"lower", "upper"};
    RANK_CHECK(!sluice_world_create(NULL, &p->world));
    RANK_CHECK(!sluice_runtime_create(p->world, config, &p->rt));
    for (int l = 0; l < 2; l++) {
        RANK_CHECK(!sluice_layer_add(p->rt, names[l], &p->layer[l]));
        RANK_CHECK(
            !sluice_param_add(p->layer[l], &SLUICE_INIT(sluice_param_desc, .name = "w", .count = COUNT), &p->param[l]));
    }
    return 0;
}

/* ---- A failure that all ranks find together, whereupon each exits at once ---- */

static int small_budget(int rank, int size, void *context)
{
    pair p = {0};
    sluice_config config;
    sluice_config_init(&config);
    config.budget_bytes = 1000;
    (void)size;
    (void)context;
    if (make(&p, &config)) return 1;
    note(rank, sluice_runtime_commit(p.rt));
    return 0; /* the process ends without a goodbye */
}

static void test_budget_is_the_cause(void **state)
{
    (void)state;
    for (uint32_t job = 0; job < test_rounds(20); job++) {
        memset(told_all, 0, RANKS_MAX * sizeof *told_all);
        assert_int_equal(run_ranks(3, small_budget, NULL, LIMIT_S), 0);
        for (int r = 0; r < 3; r++)
            assert_lines(3, told_all[r].status == SLUICE_ERR_BUDGET && !strcmp(told_all[r].line, told_all[0].line));
    }
}

static int other_registration(int rank, int size, void *context)
{
    pair p = {0};
    sluice_config config;
    sluice_config_init(&config);
    config.clip = rank == 1;
    (void)size;
    (void)context;
    if (make(&p, &config)) return 1;
    note(rank, sluice_runtime_commit(p.rt));
    return 0;
}

static void test_mismatch_is_the_cause(void **state)
{
    (void)state;
    for (uint32_t job = 0; job < test_rounds(20); job++) {
        memset(told_all, 0, RANKS_MAX * sizeof *told_all);
        assert_int_equal(run_ranks(3, other_registration, NULL, LIMIT_S), 0);
        for (int r = 0; r < 3; r++)
            assert_lines(3, told_all[r].status == SLUICE_ERR_MISMATCH && !strcmp(told_all[r].line, told_all[0].line) &&
                                strstr(told_all[r].line, "rank 1 has other settings than rank 0: clip is 1 there and 0 "
                                                         "on rank 0; give"));
    }
}

/* ---- An optimizer of the program's that says no more than a status ---- */

/* Leaves the line of a call that failed, whichever thread this is. */
static sluice_status fail_a_call(void)
{
    return sluice_world_broadcast(NULL, NULL, 1, 99) == SLUICE_ERR_ARGUMENT ? SLUICE_OK : SLUICE_ERR_SYSTEM;
}

static sluice_status refuse_second_step(const sluice_update *update, void *context)
{
    return update->step < 2 ? fail_a_call() : *(sluice_status *)context;
}

static sluice_status one_step(pair *p, bool mistaken);

/* The line of an earlier failure stays until there is another one. */
static int bare_status(int rank, int size, void *context)
{
    pair p = {0};
    sluice_config config;
    sluice_optimizer own =
        SLUICE_INIT(sluice_optimizer, .name = "own", .update = refuse_second_step, .context = context);
    sluice_config_init(&config);
    config.optimizer = &own;
    (void)size;
    if (make(&p, &config)) return 1;
    RANK_CHECK(!sluice_runtime_commit(p.rt));
    RANK_CHECK(!fail_a_call());
    char earlier[LINE_BYTES];
    snprintf(earlier, sizeof earlier, "%s", sluice_last_error());
    sluice_status status = one_step(&p, false);
    if (!status) status = sluice_runtime_sync(p.rt);
    RANK_CHECK(!status && !strcmp(earlier, sluice_last_error()));
    status = one_step(&p, false);
    if (!status) status = sluice_runtime_sync(p.rt);
    note(rank, status);
    return 0;
}

static void test_a_bare_status_is_named(void **state)
{
    (void)state;
    static const struct {
        int returned;
        sluice_status status;
        const char *line;
    } cases[] = {{SLUICE_ERR_UNSUPPORTED, SLUICE_ERR_UNSUPPORTED, "returned unsupported (-11)"},
                 {7, SLUICE_ERR_ARGUMENT, "returned 7, which is no status"},
                 {-99, SLUICE_ERR_ARGUMENT, "returned -99, which is no status"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sluice_status returned = (sluice_status)cases[i].returned;
        memset(told_all, 0, RANKS_MAX * sizeof *told_all);
        assert_int_equal(run_ranks(1, bare_status, &returned, LIMIT_S), 0);
        assert_lines(1, told_all[0].status == cases[i].status && strstr(told_all[0].line, cases[i].line) &&
                            strstr(told_all[0].line, "optimizer own, parameter \"lower.w\": returned"));
    }
}

/* ---- A failure of one rank alone ---- */

typedef enum { IN_STEP, AT_CREATE, AT_ADD } place;
typedef enum { STAYS, DESTROYS, EXITS } afterwards;

typedef struct {
    place where;
    afterwards then;
} mistake;

static sluice_status one_step(pair *p, bool mistaken)
{
    sluice_status status = sluice_step_begin(p->rt, &SLUICE_INIT(sluice_step_options, .learning_rate = 0.1));
    if (!status && mistaken) return sluice_backward_begin(p->layer[0]);
    for (int l = 0; !status && l < 2; l++) {
        status = sluice_forward_begin(p->layer[l]);
        if (!status) status = sluice_forward_end(p->layer[l]);
    }
    for (int l = 2; !status && l-- > 0;) {
        status = sluice_backward_begin(p->layer[l]);
        if (!status) status = sluice_backward_end(p->layer[l]);
    }
    return status ? status : sluice_step_end(p->rt, NULL);
}

/* Rank 1 makes its mistake; the others go on until they hear of it. */
static int one_fails(int rank, int size, void *context)
{
    const mistake *m = context;
    pair p = {0};
    sluice_config config;
    sluice_status status = SLUICE_OK;
    const bool mine = rank == 1;
    sluice_config_init(&config);
    config.schedule = "one_ahead";
    if (mine && m->where == AT_CREATE) {
        config.optimizer_name = "adagrad";
        RANK_CHECK(!sluice_world_create(NULL, &p.world));
        status = sluice_runtime_create(p.world, &config, &p.rt);
        RANK_CHECK(status == SLUICE_ERR_ARGUMENT);
    } else if (make(&p, &config))
        return 1;
    if (mine && m->where == AT_ADD) {
        status = sluice_layer_add(p.rt, "lower", &p.layer[0]);
        RANK_CHECK(status == SLUICE_ERR_ARGUMENT);
    }
    if (!status) status = sluice_runtime_commit(p.rt);
    for (int s = 0; !status; s++) status = one_step(&p, mine && s == 3);
    note(rank, status);
    if (!mine || m->then == EXITS) exit(0);
    if (m->then == STAYS) idle_until_told(rank, size);
    sluice_runtime_destroy(p.rt);
    sluice_world_destroy(p.world);
    return 0;
}

static void check_one_fails(mistake m, const char *expected)
{
    int codes[RANKS_MAX];
    memset(told_all, 0, RANKS_MAX * sizeof *told_all);
    run_ranks_codes(3, one_fails, &m, LIMIT_S, codes);
    assert_lines(3, strstr(told_all[1].line, expected) != NULL);
    for (int r = 0; r < 3; r++) {
        if (r == 1) continue;
        assert_int_equal(codes[r], 0);
        assert_lines(3, told_all[r].status == SLUICE_ERR_PEER && strstr(told_all[r].line, expected) &&
                            !strncmp(told_all[r].line, "rank 1 ", 7));
    }
}

static void test_one_fails(void **state)
{
    (void)state;
    check_one_fails((mistake){IN_STEP, STAYS}, "backward_begin called where");
    for (uint32_t round = 0; round < test_rounds(3); round++) {
        check_one_fails((mistake){IN_STEP, EXITS}, "backward_begin called where");
        check_one_fails((mistake){AT_CREATE, EXITS}, "adagrad");
        check_one_fails((mistake){AT_ADD, EXITS}, "lower");
        check_one_fails((mistake){IN_STEP, DESTROYS}, "backward_begin called where");
        check_one_fails((mistake){AT_CREATE, DESTROYS}, "adagrad");
        check_one_fails((mistake){AT_ADD, DESTROYS}, "lower");
    }
}

/* ---- Calls that one rank makes alone ---- */

typedef enum { READS, READS_STATE, HASHES, EVALUATES, SAVES, SYNCS, REPLANS } lonely_call;
typedef enum { STAND_IN_BARRIER, GO_ON } company;

typedef struct {
    const char *strategy;
    lonely_call call;
    company others;
    int alone;
} lonely;

static sluice_status call_alone(pair *p, lonely_call call)
{
    float value;
    char hex[65];
    sluice_status status;
    switch (call) {
    case READS: return sluice_param_read(p->param[1], 0, 1, &value);
    case READS_STATE: return sluice_param_state_read(p->param[1], "exp_avg", 0, 1, &value);
    case HASHES: return sluice_runtime_weights_sha256(p->rt, hex);
    case SAVES: return sluice_checkpoint_save(p->rt, "/nonexistent/never", NULL, 0);
    case SYNCS: return sluice_runtime_sync(p->rt);
    case REPLANS: return sluice_runtime_replan(p->rt, NULL, "serial", 0);
    case EVALUATES: break;
    }
    status = sluice_evaluate_begin(p->rt);
    for (int l = 0; !status && l < 2; l++) {
        status = sluice_forward_begin(p->layer[l]);
        if (!status) status = sluice_forward_end(p->layer[l]);
    }
    return status ? status : sluice_evaluate_end(p->rt);
}

static const char *name_of(lonely_call call)
{
    static const char *const names[] = {"param_read of \"upper.w\"",
                                        "param_state_read of \"upper.w\"",
                                        "param_read of \"lower.w\"",
                                        "evaluate_begin",
                                        "checkpoint_save",
                                        "sync",
                                        "replan"};
    return names[call];
}

static int call_by_one(int rank, int size, void *context)
{
    const lonely *test = context;
    pair p = {0};
    sluice_config config;
    sluice_config_init(&config);
    config.strategy = test->strategy;
    config.schedule = "one_ahead";
    (void)size;
    if (make(&p, &config)) return 1;
    RANK_CHECK(!sluice_runtime_commit(p.rt));
    sluice_status status = SLUICE_OK;
    for (int s = 0; !status && s < 2; s++) status = one_step(&p, false);
    RANK_CHECK(!status);
    if (rank == test->alone) status = call_alone(&p, test->call);
    while (!status) status = test->others == STAND_IN_BARRIER ? sluice_world_barrier(p.world) : one_step(&p, false);
    note(rank, status);
    sluice_runtime_destroy(p.rt);
    sluice_world_destroy(p.world);
    return 0;
}

static void check_lonely(lonely test)
{
    char alone[16];
    memset(told_all, 0, RANKS_MAX * sizeof *told_all);
    assert_int_equal(run_ranks(3, call_by_one, &test, LIMIT_S), 0);
    snprintf(alone, sizeof alone, "rank %d", test.alone);
    for (int r = 0; r < 3; r++)
        assert_lines(3, told_all[r].status == SLUICE_ERR_MISMATCH && strstr(told_all[r].line, alone) &&
                            !strcmp(told_all[r].line, told_all[0].line) &&
                            strstr(told_all[r].line, name_of(test.call)) &&
                            strstr(told_all[r].line, test.others == GO_ON ? "waits in" : "barrier"));
}

/* The strategy decides what a call moves, but not whether a mistake shows: they take turns. */
static void test_lonely_calls(void **state)
{
    static const char *const strategies[] = {"dp", "fsdp"};
    (void)state;
    for (int call = READS; call <= SYNCS; call++)
        for (int others = STAND_IN_BARRIER; others <= GO_ON; others++)
            check_lonely(
                (lonely){strategies[(call / 2 + others) % 2], (lonely_call)call, (company)others, (call + others) % 2});
}

/* ---- Ranks that take no part ---- */

typedef enum { BEFORE_COMMIT, BEFORE_BARRIER, IN_THE_STEP, BEFORE_STEP } absence;

typedef struct {
    absence when;
    int absent;
    const char *strategy, *missed, *last; /* the call that it did not make; the last one that it made */
} absent_case;

static int one_absent(int rank, int size, void *context)
{
    const absent_case *test = context;
    pair p = {0};
    sluice_config config;
    sluice_config_init(&config);
    config.strategy = test->strategy;
    config.schedule = "one_ahead";
    const bool gone = rank == test->absent;
    setenv("SLUICE_COMM_TIMEOUT", "2", 1);
    if (make(&p, &config)) return 1;
    const bool commits = !gone || test->when != BEFORE_COMMIT;
    sluice_status status = commits ? sluice_runtime_commit(p.rt) : SLUICE_OK;
    if (test->when != BEFORE_COMMIT) {
        RANK_CHECK(!status);
        RANK_CHECK(!one_step(&p, false));
    }
    if (gone && test->when == IN_THE_STEP) {
        RANK_CHECK(!sluice_step_begin(p.rt, &SLUICE_INIT(sluice_step_options, .learning_rate = 0.1)));
        RANK_CHECK(!sluice_forward_begin(p.layer[0]));
    }
    if (gone) idle_until_told(rank, size);
    while (!status) status = test->when == BEFORE_BARRIER ? sluice_world_barrier(p.world) : one_step(&p, false);
    note(rank, status);
    sluice_runtime_destroy(p.rt);
    sluice_world_destroy(p.world);
    return 0;
}

static void check_absent(absent_case test)
{
    int codes[RANKS_MAX];
    char name[32], missed[32];
    memset(told_all, 0, RANKS_MAX * sizeof *told_all);
    run_ranks_codes(3, one_absent, &test, LIMIT_S, codes);
    snprintf(name, sizeof name, "rank %d is absent", test.absent);
    snprintf(missed, sizeof missed, "which rank %d has not called", test.absent);
    for (int r = 0; r < 3; r++) {
        if (r == test.absent) continue;
        assert_int_equal(codes[r], 0);
        assert_lines(3, told_all[r].status == SLUICE_ERR_TIMEOUT && strstr(told_all[r].line, name) &&
                            strstr(told_all[r].line, test.missed) && strstr(told_all[r].line, missed) &&
                            strstr(told_all[r].line, test.last));
    }
}

static void test_absent(void **state)
{
    (void)state;
    check_absent((absent_case){BEFORE_COMMIT, 0, "fsdp", "all_gather (last call: commit)", "param_add"});
    check_absent((absent_case){BEFORE_COMMIT, 1, "fsdp", "all_gather (last call: commit)", "param_add"});
    check_absent((absent_case){BEFORE_BARRIER, 1, "dp", "barrier", "its last: step_end"});
    check_absent((absent_case){BEFORE_STEP, 0, "dp", "step_end", "its last: step_end"});
    check_absent((absent_case){IN_THE_STEP, 1, "fsdp", "forward_begin of", "forward_begin of \"lower\""});
}

/* A rank that is slow, but calls again before it counts as absent, disturbs nobody; nor does a program that waits in
 * one thread and works in another. */
static int slow(int rank, int size, void *context)
{
    pair p = {0};
    sluice_config config;
    sluice_config_init(&config);
    config.strategy = "fsdp";
    config.schedule = "one_ahead";
    (void)size;
    (void)context;
    setenv("SLUICE_COMM_TIMEOUT", "8", 1);
    if (make(&p, &config)) return 1;
    if (rank == 1) wait_ms(1200); /* two heartbeats and more */
    RANK_CHECK(!sluice_runtime_commit(p.rt));
    for (int s = 0; s < 3; s++) {
        if (rank == s) wait_ms(1200);
        RANK_CHECK(!one_step(&p, false));
        if (rank == 2 - s) wait_ms(700);
        RANK_CHECK(!sluice_world_barrier(p.world));
    }
    sluice_runtime_destroy(p.rt);
    sluice_world_destroy(p.world);
    return 0;
}

static void test_slow(void **state)
{
    (void)state;
    assert_int_equal(run_ranks(3, slow, NULL, LIMIT_S), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lonely_calls),
        cmocka_unit_test(test_absent),
        cmocka_unit_test(test_slow),
        cmocka_unit_test(test_one_fails),
        cmocka_unit_test(test_budget_is_the_cause),
        cmocka_unit_test(test_mismatch_is_the_cause),
        cmocka_unit_test(test_a_bare_status_is_named),
    };
    told_all = mmap(NULL, RANKS_MAX * sizeof *told_all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (told_all == MAP_FAILED) return 1;
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
