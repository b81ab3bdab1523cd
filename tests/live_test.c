/* No call waits for ever, and every rank says the first cause: budgets that are too small, mistakes of one rank, ranks
 * that take no part. Each rank leaves what it was told in memory that the test shares with it. */
#include "tests/ranks.h"

#include <sluice/sluice.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>
#include <cmocka.h>

enum { COUNT = 500, LINE_BYTES = 1024, LIMIT_S = 60 };

/* What each rank was told. */
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

static int make(pair *p, const sluice_config *config)
{
    const char *names[] = {"lower", "upper"};
    RANK_CHECK(!sluice_world_create(NULL, &p->world));
    RANK_CHECK(!sluice_runtime_create(p->world, config, &p->rt));
    for (int l = 0; l < 2; l++) {
        RANK_CHECK(!sluice_layer_add(p->rt, names[l], &p->layer[l]));
        RANK_CHECK(!sluice_param_add(p->layer[l], &(sluice_param_desc){.name = "w", .count = COUNT}, &p->param[l]));
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
    return 0; /* and the process ends without a goodbye */
}

static void test_budget_is_the_cause(void **state)
{
    (void)state;
    for (int job = 0; job < 50; job++) {
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
    for (int job = 0; job < 50; job++) {
        memset(told_all, 0, RANKS_MAX * sizeof *told_all);
        assert_int_equal(run_ranks(3, other_registration, NULL, LIMIT_S), 0);
        for (int r = 0; r < 3; r++)
            assert_lines(3, told_all[r].status == SLUICE_ERR_MISMATCH && !strcmp(told_all[r].line, told_all[0].line) &&
                                strstr(told_all[r].line, "rank 1 has other settings"));
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_budget_is_the_cause),
        cmocka_unit_test(test_mismatch_is_the_cause),
    };
    told_all = mmap(NULL, RANKS_MAX * sizeof *told_all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (told_all == MAP_FAILED) return 1;
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
