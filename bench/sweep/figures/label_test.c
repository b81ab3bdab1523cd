/* Rows of results get labels that name, in words, just the settings in which they differ. */
#include "bench/sweep/figures/label.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static json_t *row(const char *text)
{
    json_error_t error;
    json_t *parsed = json_loads(text, 0, &error);
    if (!parsed) fail_msg("%s: %s", text, error.text);
    return parsed;
}

/* Labels two rows, and compares what they got. */
static void labels(const char *a, const char *b, const char *first, const char *second)
{
    json_t *rows = json_pack("[o, o]", row(a), row(b));
    slc_bench_label_rows(&rows, 1);
    const char *expected[] = {first, second};
    for (size_t i = 0; i < 2; i++) {
        const char *got = json_string_value(json_object_get(json_array_get(rows, i), "label"));
        if (!expected[i])
            assert_null(got);
        else
            assert_string_equal(got, expected[i]);
    }
    json_decref(rows);
}

static void test_equal_rows_have_none(void **state)
{
    (void)state;
    labels("{\"optimizer\": \"adamw\", \"settings\": {\"batch\": 4}}",
           "{\"optimizer\": \"adamw\", \"settings\": {\"batch\": 4}, \"label\": \"stale\"}", NULL, NULL);
}

static void test_what_differs_is_named(void **state)
{
    (void)state;
    labels("{\"world\": 1, \"settings\": {\"batch\": 4, \"precision\": \"fp32\", \"steps\": 9, \"lr_horizon\": 9}}",
           "{\"world\": 2, \"settings\": {\"batch\": 8, \"precision\": \"bf16\", \"steps\": 5, \"lr_horizon\": 5}}",
           "1 rank, batch 4, fp32, steps 9", "2 ranks, batch 8, bf16, steps 5");
    labels("{\"settings\": {\"micro_batches\": 1}}", "{\"settings\": {\"micro_batches\": 2}}", "micro batches 1",
           "micro batches 2");
    labels("{\"environment\": {\"host\": \"a\", \"sluice\": \"1.0\"}}",
           "{\"environment\": {\"host\": \"b\", \"sluice\": \"1.1\"}}", "a, sluice 1.0", "b, sluice 1.1");
}

static void test_what_tables_show_anyway_is_not(void **state)
{
    (void)state;
    labels("{\"strategy\": \"dp\", \"settings\": {\"strategy\": \"dp\", \"throttle\": \"none\"}}",
           "{\"strategy\": \"sdp\", \"settings\": {\"strategy\": \"sdp\", \"throttle\": \"1gbit\"}}", NULL, NULL);
}

static void test_an_optimizer_has_numbers_of_its_own(void **state)
{
    (void)state;
    labels("{\"optimizer\": \"adamw\", \"settings\": {\"epsilon\": 1e-8, \"lr\": 0.1}}",
           "{\"optimizer\": \"lamb\", \"settings\": {\"epsilon\": 1e-6, \"lr\": 0.2}}", NULL, NULL);
    labels("{\"optimizer\": \"adamw\", \"settings\": {\"lr\": 0.1}}",
           "{\"optimizer\": \"adamw\", \"settings\": {\"lr\": 0.2}}", "lr 0.1", "lr 0.2");
}

static void test_a_source_tells_where_nothing_else_does(void **state)
{
    (void)state;
    labels("{\"source\": \"A\", \"settings\": {\"batch\": 4}}", "{\"source\": \"B\", \"settings\": {\"batch\": 4}}",
           "A", "B");
    labels("{\"source\": \"A\", \"settings\": {\"batch\": 4}}", "{\"source\": \"B\", \"settings\": {\"batch\": 8}}",
           "batch 4", "batch 8");
    labels("{\"source\": \"A\", \"strategy\": \"dp\"}", "{\"source\": \"B\", \"strategy\": \"sdp\"}", NULL, NULL);
}

static void test_a_row_that_lacks_a_setting_differs_in_none(void **state)
{
    (void)state;
    labels("{\"settings\": {\"batch\": 4}}", "{\"settings\": {}}", NULL, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal_rows_have_none),
        cmocka_unit_test(test_what_differs_is_named),
        cmocka_unit_test(test_what_tables_show_anyway_is_not),
        cmocka_unit_test(test_an_optimizer_has_numbers_of_its_own),
        cmocka_unit_test(test_a_source_tells_where_nothing_else_does),
        cmocka_unit_test(test_a_row_that_lacks_a_setting_differs_in_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
