/* The threads of a rank by what Slurm, OpenMP's variable and a launcher inside a task say. */
#include "bench/cli/default_threads.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sluice/status.h>

static int clear(void **state)
{
    (void)state;
    static const char *const names[] = {"SLURM_CPUS_PER_TASK", "SLURM_CPUS_ON_NODE", "OMP_NUM_THREADS", "RANK",
                                        "WORLD_SIZE",          "LOCAL_WORLD_SIZE",   "LOCAL_RANK",      "MASTER_ADDR"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) unsetenv(names[i]);
    return 0;
}

static void expect(uint64_t threads)
{
    uint64_t got = 0;
    assert_int_equal(slc_fill_threads(&got), SLUICE_OK);
    assert_int_equal(got, threads);
}

static void expect_refusal(const char *words)
{
    uint64_t got = 0;
    assert_int_equal(slc_fill_threads(&got), SLUICE_ERR_ARGUMENT);
    assert_non_null(strstr(sluice_last_error(), words));
}

static void test_order(void **state)
{
    (void)state;
    expect(1);
    setenv("OMP_NUM_THREADS", "6", 1);
    expect(6);
    setenv("OMP_NUM_THREADS", "4,2", 1);
    expect(4);
    setenv("SLURM_CPUS_PER_TASK", "8", 1);
    expect(8);
    setenv("SLURM_CPUS_PER_TASK", "", 1);
    expect(4);
    uint64_t given = 3;
    assert_int_equal(slc_fill_threads(&given), SLUICE_OK);
    assert_int_equal(given, 3);
}

static void test_refusals(void **state)
{
    static const char *const wrong[] = {"0", "many", "-2", "1025", "99999999999999999999", "8x", " 8", "2,2"};
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        setenv("SLURM_CPUS_PER_TASK", wrong[i], 1);
        expect_refusal("SLURM_CPUS_PER_TASK");
    }
    unsetenv("SLURM_CPUS_PER_TASK");
    setenv("OMP_NUM_THREADS", "all", 1);
    expect_refusal("OMP_NUM_THREADS=all");
}

static void test_ranks_in_one_task(void **state)
{
    (void)state;
    setenv("SLURM_CPUS_PER_TASK", "8", 1);
    setenv("SLURM_CPUS_ON_NODE", "8", 1);
    expect(8); /* the task itself is the rank */
    setenv("RANK", "1", 1);
    setenv("WORLD_SIZE", "4", 1);
    setenv("LOCAL_WORLD_SIZE", "4", 1);
    setenv("MASTER_ADDR", "127.0.0.1", 1);
    expect(2);
    setenv("SLURM_CPUS_ON_NODE", "32", 1); /* four tasks, and a rank for each */
    expect(8);
    setenv("SLURM_CPUS_ON_NODE", "3", 1);
    expect(1);
    unsetenv("SLURM_CPUS_ON_NODE");
    expect(8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_order, clear),
        cmocka_unit_test_setup(test_refusals, clear),
        cmocka_unit_test_setup(test_ranks_in_one_task, clear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
