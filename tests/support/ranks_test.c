/* A test that starts ranks learns of every one that fails, dies, hangs or leaks, and no two worlds get the same
 * port. */
#include "tests/support/ranks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static int answer_by_rank(int rank, int size, void *context)
{
    (void)size;
    const int *codes = context;
    if (codes[rank] > 128) kill(getpid(), codes[rank] - 128);
    return codes[rank];
}

static void codes_and_signals_are_told(void **state)
{
    (void)state;
    int wanted[] = {0, 7, 128 + SIGKILL}, codes[3];
    assert_int_equal(run_ranks_codes(3, answer_by_rank, wanted, 60, codes), 2);
    assert_memory_equal(codes, wanted, sizeof codes);
}

static int hang_unless_zero(int rank, int size, void *context)
{
    (void)size, (void)context;
    while (rank) pause();
    return 0;
}

static void a_rank_that_hangs_is_ended(void **state)
{
    (void)state;
    int codes[2];
    assert_true(run_ranks_codes(2, hang_unless_zero, NULL, 1, codes));
    assert_int_equal(codes[1], 124);
}

static void ports_differ(void **state)
{
    (void)state;
    int ports[6], port;
    for (int i = 0; i < 6; i++) {
        ports[i] = free_port();
        assert_in_range(ports[i], 1024, 32767);
        for (int other = 0; other < i; other++) assert_int_not_equal(ports[other], ports[i]);
    }
    for (int i = 0; i < 6; i++) assert_int_equal(keep_port(ports[i]), -1);
    for (int i = 0; i < 1000; i++) { /* the descriptors that keep ports do not pile up */
        port = free_port();
        assert_true(port > 0);
    }
    int next = dup(0);
    assert_true(next < 100);
    close(next);
}

#if defined(__SANITIZE_ADDRESS__)
static void *volatile kept;

static void __attribute__((noinline)) leak_some(size_t bytes)
{
    kept = malloc(bytes);
    memset(kept, 1, bytes);
    kept = NULL;
}

static int leak_in_one(int rank, int size, void *context)
{
    (void)size, (void)context;
    for (size_t bytes = 1000; rank && bytes < 1003; bytes++) leak_some(bytes);
    return 0;
}

static void a_rank_that_leaks_does_not_pass(void **state)
{
    (void)state;
    int codes[2];
    assert_int_equal(run_ranks_codes(2, leak_in_one, NULL, 60, codes), 1);
    assert_int_equal(codes[1], RANK_LEAKS);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(codes_and_signals_are_told),
        cmocka_unit_test(a_rank_that_hangs_is_ended),
        cmocka_unit_test(ports_differ),
#if defined(__SANITIZE_ADDRESS__)
        cmocka_unit_test(a_rank_that_leaks_does_not_pass),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
