/* Work must be counted by its prices, and end at its limit or at the ceiling. */
#include "lib/plan/effort/work.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void every_kind_costs(void **state)
{
    (void)state;
    double sum = 0;
    slc_work work = {0};
    for (int k = 0; k < SLC_WORK_KINDS; k++) {
        assert_true(slc_work_price((slc_work_kind)k) > 0);
        sum += 5 * slc_work_price((slc_work_kind)k);
        slc_work_add(&work, (slc_work_kind)k, 5);
        slc_work_add(NULL, (slc_work_kind)k, 5);
    }
    assert_true(fabs(work.spent_s - sum) < 1e-12);
}

static void work_is_over_when_it_is_spent(void **state)
{
    (void)state;
    slc_work work = {0};
    assert_false(slc_work_is_over(&work, 1e-9));
    slc_work_add(&work, SLC_WORK_PIVOT, 100);
    assert_true(slc_work_is_over(&work, work.spent_s));
    assert_false(slc_work_is_over(&work, work.spent_s * 1.001));
    assert_false(slc_work_is_over(&work, INFINITY));
    assert_false(slc_work_is_over(NULL, 0));
    assert_false(work.cut);
    assert_true(isinf(slc_work_ceiling_left_s(&work)) && isinf(slc_work_ceiling_left_s(NULL)));
}

static void the_ceiling_cuts(void **state)
{
    (void)state;
    slc_work work = {.ceiling_ns = 1}; /* long ago */
    assert_true(slc_work_ceiling_left_s(&work) == 0);
    assert_true(slc_work_is_over(&work, 0)); /* spent, so that nothing is cut */
    assert_false(work.cut);
    assert_true(slc_work_is_over(&work, 1));
    assert_true(work.cut);
    work = (slc_work){.ceiling_ns = UINT64_MAX};
    assert_false(slc_work_is_over(&work, 1));
    assert_true(slc_work_ceiling_left_s(&work) > 1e6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_kind_costs),
                                       cmocka_unit_test(work_is_over_when_it_is_spent),
                                       cmocka_unit_test(the_ceiling_cuts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
