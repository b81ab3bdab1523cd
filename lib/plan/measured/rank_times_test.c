/* The right rank's times must stand for all ranks', on tables whose answer is known. */
#include "lib/plan/measured/rank_times.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>

enum { COUNT = 4, SLOTS = 3 };

static double take(const double *all, size_t ranks, double *out)
{
    return slc_rank_times_take(all, ranks, COUNT, SLOTS, out);
}

static void check_times(const double *out, const double *wanted)
{
    for (int i = 0; i < COUNT; i++) assert_true(out[i] == wanted[i]);
}

static void one_rank_stands_for_itself(void **state)
{
    (void)state;
    const double all[COUNT] = {1, 2, 3, 9};
    double out[COUNT];
    assert_true(take(all, 1, out) == 0);
    check_times(out, all);
}

/* A rank that is slower everywhere is waited for; nobody comes later than it. */
static void the_slower_rank_is_taken(void **state)
{
    (void)state;
    const double all[3][COUNT] = {{1, 2, 3, 9}, {2, 3, 4, 1}, {1, 3, 4, 5}};
    double out[COUNT];
    assert_true(take(all[0], 3, out) == 0);
    check_times(out, all[1]);
}

/* By chance each rank is slower in some slot: the largest of each, 10, is longer than any rank takes. */
static void what_chance_adds_is_told_apart(void **state)
{
    (void)state;
    const double all[2][COUNT] = {{4, 1, 2, 0}, {1, 4, 1, 7}};
    double out[COUNT];
    assert_true(fabs(take(all[0], 2, out) - 1) < 1e-12); /* 3 more in one of three slots */
    check_times(out, all[0]);
}

/* Times after those of the slots do not decide which rank is taken. If no slot was measured, the first rank is. */
static void only_slots_decide(void **state)
{
    (void)state;
    const double all[2][COUNT] = {{0, 0, 0, 1}, {0, 0, 0, 100}};
    double out[COUNT];
    assert_true(take(all[0], 2, out) == 0);
    check_times(out, all[0]);
    assert_true(slc_rank_times_take(all[0], 2, COUNT, 0, out) == 0);
    check_times(out, all[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_rank_stands_for_itself),
        cmocka_unit_test(the_slower_rank_is_taken),
        cmocka_unit_test(what_chance_adds_is_told_apart),
        cmocka_unit_test(only_slots_decide),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
