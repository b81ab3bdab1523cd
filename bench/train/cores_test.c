/* Cores that are left idle or taken twice are counted right for ranks that share a host's cores, for ranks that are
 * bound to some, and on several hosts. */
#include "bench/train/cores.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* Ranks of this host, with cores first to first + count - 1. */
static slc_rank_cores on(uint64_t host, int first, int count)
{
    slc_rank_cores cores = {.host = host};
    for (int c = first; c < first + count; c++) cores.allowed[c / 64] |= 1ull << c % 64;
    return cores;
}

static void expect(const slc_rank_cores *ranks, uint64_t count, uint64_t threads, uint64_t cores, uint64_t idle,
                   uint64_t surplus, uint64_t even, const char *words)
{
    slc_rank_cores copy[8];
    slc_cores_use use;
    char got[200];
    memcpy(copy, ranks, count * sizeof *ranks);
    slc_cores_count(copy, count, threads, &use);
    assert_int_equal(use.cores, cores);
    assert_int_equal(use.idle, idle);
    assert_int_equal(use.surplus, surplus);
    assert_int_equal(use.even, even);
    slc_cores_words(&use, got, sizeof got);
    assert_string_equal(got, words);
}

static void test_one_host(void **state)
{
    const slc_rank_cores ranks[] = {on(1, 0, 16), on(1, 0, 16), on(1, 0, 16)};
    (void)state;
    expect(ranks, 1, 16, 16, 0, 0, 16, "");
    expect(ranks, 1, 1, 16, 15, 0, 16, "15 of the 16 that this rank may use stay idle; --threads 16 takes them");
    expect(ranks, 2, 1, 16, 14, 0, 8, "14 of the 16 that these ranks may use stay idle; --threads 8 takes them");
    expect(ranks, 2, 12, 16, 0, 8, 8,
           "8 threads more than there are cores for them, so cores are taken twice (16 for these ranks); --threads 8 "
           "fits");
    expect(ranks, 3, 5, 16, 1, 0, 5, "1 of the 16 that these ranks may use stay idle");
}

static void test_too_many_ranks(void **state)
{
    const slc_rank_cores ranks[] = {on(1, 64, 2), on(1, 64, 2), on(1, 64, 2)};
    (void)state;
    expect(ranks, 3, 1, 2, 0, 1, 1,
           "1 thread more than there are cores for them, so cores are taken twice (2 for these ranks); start fewer "
           "ranks on a host");
}

/* A step that was started without --cpus-per-task has one core a rank, whatever the job has. */
static void test_bound_ranks(void **state)
{
    const slc_rank_cores apart[] = {on(1, 0, 8), on(1, 8, 8)}, narrow[] = {on(1, 0, 1), on(1, 1, 1)};
    (void)state;
    expect(apart, 2, 8, 16, 0, 0, 8, "");
    expect(apart, 2, 1, 16, 14, 0, 8, "14 of the 16 that these ranks may use stay idle; --threads 8 takes them");
    expect(narrow, 2, 8, 2, 0, 14, 1,
           "14 threads more than there are cores for them, so cores are taken twice (2 for these ranks); --threads 1 "
           "fits");
}

static void test_shares(void **state)
{
    const uint64_t of[][3] = {{0, 2, 0}, {1, 2, 1}, {14, 2, 7}, {3, 1, 3}, {5, 4, 2}}; /* idle, ranks, each */
    (void)state;
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        const slc_cores_use use = {.idle = of[i][0], .ranks = of[i][1]};
        assert_int_equal(slc_cores_idle_each(&use), of[i][2]);
    }
}

static void test_several_hosts(void **state)
{
    const slc_rank_cores ranks[] = {on(7, 0, 4), on(3, 0, 8), on(7, 0, 4), on(3, 0, 8)};
    (void)state;
    expect(ranks, 4, 2, 12, 4, 0, 2, "4 of the 12 that these ranks may use stay idle");
    expect(ranks, 4, 1, 12, 8, 0, 2, "8 of the 12 that these ranks may use stay idle; --threads 2 takes them");
    expect(ranks, 4, 4, 12, 0, 4, 2,
           "4 threads more than there are cores for them, so cores are taken twice (12 for these ranks); --threads 2 "
           "fits");
}

/* A system that does not tell has nothing held against it. */
static void test_not_known(void **state)
{
    const slc_rank_cores ranks[] = {on(1, 0, 0)};
    (void)state;
    expect(ranks, 1, 4, 0, 0, 4, 1, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_host),      cmocka_unit_test(test_too_many_ranks), cmocka_unit_test(test_bound_ranks),
        cmocka_unit_test(test_several_hosts), cmocka_unit_test(test_shares),         cmocka_unit_test(test_not_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
