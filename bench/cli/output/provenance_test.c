/* A result says which command line made it, and when; it keeps a secret. */
#include "bench/cli/output/provenance.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static char program[] = "/usr/bin/sluice", name[] = "perf", option[] = "-b", odd[] = "caf\xe9",
            whole[] = "r\xc3\xa9sum\xc3\xa9";

static void test_words_are_as_typed(void **state)
{
    (void)state;
    char *argv[] = {program, name, option, odd, whole, NULL};
    slc_provenance_begin("sluice", 5, argv);
    argv[2] = name; /* a parser sorts them */
    json_t *content = json_object(), *line;
    slc_provenance_add(content);
    line = json_object_get(content, "command_line");
    static const char *const expected[] = {"sluice", "perf", "-b", "caf?", "r\xc3\xa9sum\xc3\xa9"};
    assert_int_equal(json_array_size(line), 5);
    for (size_t i = 0; i < 5; i++) assert_string_equal(json_string_value(json_array_get(line, i)), expected[i]);
    json_decref(content);
}

static void test_settings_are_told_and_the_token_is_not(void **state)
{
    (void)state;
    char *argv[] = {program, NULL};
    setenv("SLUICE_COMM_SPIN_US", "7", 1);
    setenv("SLUICE_JOB_TOKEN", "hush", 1);
    slc_provenance_begin("sluice", 1, argv);
    json_t *content = json_object();
    slc_provenance_add(content);
    const json_t *variables = json_object_get(content, "variables");
    assert_string_equal(json_string_value(json_object_get(variables, "SLUICE_COMM_SPIN_US")), "7");
    assert_null(json_object_get(variables, "SLUICE_JOB_TOKEN"));
    json_decref(content);
}

static void test_what_is_there_stays(void **state)
{
    (void)state;
    char *argv[] = {program, NULL};
    slc_provenance_begin("sluice", 1, argv);
    json_t *content = json_pack("{s:[s]}", "command_line", "another"), *list = json_array();
    slc_provenance_add(content);
    assert_int_equal(json_object_size(content), 1);
    slc_provenance_add(list); /* no object: a list has no room for it */
    assert_int_equal(json_array_size(list), 0);
    json_decref(content);
    json_decref(list);
}

static void test_dates_can_be_sorted(void **state)
{
    (void)state;
    char text[32];
    int year, month, day, hour, minute, second;
    char zone;
    assert_int_equal(strlen(slc_date_now(text)), 20);
    assert_int_equal(sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2d%c", &year, &month, &day, &hour, &minute, &second, &zone), 7);
    assert_int_equal(zone, 'Z');
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words_are_as_typed),
        cmocka_unit_test(test_settings_are_told_and_the_token_is_not),
        cmocka_unit_test(test_what_is_there_stays),
        cmocka_unit_test(test_dates_can_be_sorted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
