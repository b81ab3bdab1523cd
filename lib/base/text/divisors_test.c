/* Divisors in words, and a buffer that has no room for all of them. */
#include "lib/base/text/divisors.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

static void divisors_are_listed(void **state)
{
    char text[200];
    (void)state;
    slc_divisors_text(12, text, sizeof text);
    assert_string_equal(text, "2, 3, 4, 6, 12");
    slc_divisors_text(7, text, sizeof text);
    assert_string_equal(text, "7");
    slc_divisors_text(1, text, sizeof text);
    assert_string_equal(text, "");
}

static void short_text_ends_with_a_whole_number(void **state)
{
    char text[20];
    (void)state;
    slc_divisors_text(720720, text, sizeof text);
    assert_string_equal(text, "2, 3");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(divisors_are_listed),
                                       cmocka_unit_test(short_text_ends_with_a_whole_number)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
