/* A mistyped name finds the known one that was meant, and a name that is like none finds nothing. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "lib/base/text/nearest.h"

#include <string.h>

static const char *suggest(const char *typed)
{
    static const char *const known[] = {"train", "eval", "bench", "steps", "budget", "run"};
    slc_nearest nearest = {0};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        slc_nearest_offer(&nearest, typed, strlen(typed), known[i]);
    return slc_nearest_suggestion(&nearest, strlen(typed));
}

static void near_names_are_found(void **state)
{
    (void)state;
    assert_string_equal(suggest("trian"), "train");
    assert_string_equal(suggest("stesp"), "steps");
    assert_string_equal(suggest("buget"), "budget");
    assert_string_equal(suggest("budgetts"), "budget");
    assert_string_equal(suggest("run"), "run");
}

static void far_names_are_not(void **state)
{
    (void)state;
    char long_name[200];
    memset(long_name, 'x', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = 0;
    assert_null(suggest("xyzzy"));
    assert_null(suggest("q"));
    assert_null(suggest(""));
    assert_null(suggest(long_name));
    slc_nearest none = {0};
    assert_null(slc_nearest_suggestion(&none, 5));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(near_names_are_found), cmocka_unit_test(far_names_are_not)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
