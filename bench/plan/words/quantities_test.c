/* Times are written as people read them: in the largest unit that leaves at least 1, and without a sign if they round
 * to 0. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "bench/plan/words/quantities.h"

static void times_have_the_largest_unit(void **state)
{
    (void)state;
    char text[24];
    assert_string_equal(slc_plan_seconds(1.25, text), "1.250 s");
    assert_string_equal(slc_plan_seconds(-1.25, text), "-1.250 s");
    assert_string_equal(slc_plan_seconds(0.0123, text), "12.3 ms");
    assert_string_equal(slc_plan_seconds(42.4e-6, text), "42 us");
    assert_string_equal(slc_plan_seconds(-0.6e-6, text), "-1 us");
}

/* The difference of two sums of times may be a rounding error below 0. */
static void nothing_has_no_sign(void **state)
{
    (void)state;
    static const double nothing[] = {0, -0.0, 1e-18, -1e-18, -0.4e-6, -0.5e-6};
    char text[24];
    for (size_t i = 0; i < sizeof nothing / sizeof *nothing; i++)
        assert_string_equal(slc_plan_seconds(nothing[i], text), "0 us");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(times_have_the_largest_unit),
                                       cmocka_unit_test(nothing_has_no_sign)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
