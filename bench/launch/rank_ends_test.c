/* The line that says how ranks ended: order of failures, runs of ranks, many ranks. */
#include "bench/launch/rank_ends.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void expect(const char *text, const slc_rank_end *ends, int ranks, int after)
{
    char line[200];
    slc_rank_ends_line(ends, ranks, after, line, sizeof line);
    assert_string_equal(line, text);
}

static void test_none(void **state)
{
    const slc_rank_end ends[3] = {0};
    (void)state;
    expect("", ends, 3, 0);
}

static void test_order_is_that_of_failures(void **state)
{
    const slc_rank_end ends[] = {{2, false, 1}, {3, false, 1}, {1, true, 9}, {0}};
    (void)state;
    expect("rank 2 was killed by signal 9 (Killed); ranks 0-1 ended with exit code 1", ends, 4, 0);
    expect("ranks 0-1 ended with exit code 1", ends, 4, 1);
    expect("", ends, 4, 3);
}

static void test_runs(void **state)
{
    const slc_rank_end ends[] = {{1, false, 7}, {0},           {2, false, 7}, {0},
                                 {3, false, 7}, {4, false, 7}, {5, true, 15}, {6, true, 15}};
    (void)state;
    expect("ranks 0, 2 and 4-5 ended with exit code 7; ranks 6-7 were killed by signal 15 (Terminated)", ends, 8, 0);
}

static void test_unknown(void **state)
{
    const slc_rank_end ends[] = {{2, false, 1}, {1, false, SLC_END_UNKNOWN}, {3, false, SLC_END_UNKNOWN}};
    (void)state;
    expect("ranks 1-2 ended, and nobody knows how: they were reaped by another part of the launcher's process; rank 0 "
           "ended with exit code 1",
           ends, 3, 0);
    expect("rank 0 ended with exit code 1; rank 2 ended, and nobody knows how: it was reaped by another part of the "
           "launcher's process",
           ends, 3, 1);
}

static void test_a_line_that_is_full(void **state)
{
    enum { RANKS = 4095 };
    static slc_rank_end ends[RANKS];
    char line[64];
    (void)state;
    for (int i = 0; i < RANKS; i++) ends[i] = (slc_rank_end){i + 1, false, 1 + i % 40};
    slc_rank_ends_line(ends, RANKS, 0, line, sizeof line);
    assert_int_equal(strlen(line), sizeof line - 1);
    assert_memory_equal(line, "ranks 0, 40, 80", 15);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_none),    cmocka_unit_test(test_order_is_that_of_failures), cmocka_unit_test(test_runs),
        cmocka_unit_test(test_unknown), cmocka_unit_test(test_a_line_that_is_full),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
