/* JSON that Python writes: integers of any length are read, what is not finite is refused by its key, and all else is
 * as jansson reads it. */
#include "lib/base/text/python_json.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

/* The text is handed over without a 0 behind it, so that a sanitizer sees a read beyond its end. */
static sluice_status read_text(const char *text, json_t **out)
{
    size_t length = strlen(text);
    char *bare = malloc(length ? length : 1);
    assert_non_null(bare);
    memcpy(bare, text, length);
    sluice_status status = slc_python_json_read("here.json", bare, length, JSON_REJECT_DUPLICATES, out);
    free(bare);
    return status;
}

static json_t *must_read(const char *text)
{
    json_t *root = NULL;
    if (read_text(text, &root)) fail_msg("%s: %s", text, sluice_last_error());
    return root;
}

static void refused(const char *text, const char *why)
{
    json_t *root = NULL;
    assert_int_equal(read_text(text, &root), SLUICE_ERR_FORMAT);
    assert_null(root);
    if (!strstr(sluice_last_error(), why)) fail_msg("%s: %s, not %s", text, sluice_last_error(), why);
}

static void integers_of_any_length_are_read(void **state)
{
    (void)state;
    char text[1000] = "{\"a\": 7, \"long\": -";
    memset(text + strlen(text), '8', 700);
    strcat(text, ", \"b\": [1000000000000000019884624838656, 9223372036854775807]}");
    json_t *root = must_read(text), *list = json_object_get(root, "b");
    assert_int_equal(json_integer_value(json_object_get(root, "a")), 7);
    assert_true(json_real_value(json_object_get(root, "long")) == -1e308);
    assert_true(json_real_value(json_array_get(list, 0)) == 1e30);
    assert_true(json_integer_value(json_array_get(list, 1)) == INT64_MAX);
    json_decref(root);
    root = must_read("[-9223372036854775808,-9223372036854775809]");
    assert_true(json_integer_value(json_array_get(root, 0)) == INT64_MIN);
    assert_true(json_real_value(json_array_get(root, 1)) == -9e18);
    json_decref(root);
}

static void other_numbers_and_texts_stay(void **state)
{
    (void)state;
    json_t *root = must_read("{\"NaN\": \"-Infinity \\\" NaN\", \"99999999999999999999\": \"99999999999999999999\","
                             "\"real\": 0.12345678901234567890123, \"small\": 1e-12, \"long\": 12345678901234567890.5,"
                             "\"power\": 99999999999999999999e2, \"last\": -0}");
    assert_string_equal(json_string_value(json_object_get(root, "NaN")), "-Infinity \" NaN");
    assert_string_equal(json_string_value(json_object_get(root, "99999999999999999999")), "99999999999999999999");
    assert_true(json_real_value(json_object_get(root, "real")) == 0.12345678901234567890123);
    assert_true(json_real_value(json_object_get(root, "small")) == 1e-12);
    assert_true(json_real_value(json_object_get(root, "long")) == 12345678901234567890.5);
    assert_true(json_real_value(json_object_get(root, "power")) == 99999999999999999999e2);
    assert_true(json_is_integer(json_object_get(root, "last")));
    json_decref(root);
}

static void what_is_not_finite_is_refused_by_its_key(void **state)
{
    (void)state;
    refused("{\"a\": 1,\n \"eps\": NaN}", "here.json:2: \"eps\": NaN: give a finite number");
    refused("{\"a\": {\"inside\": 1}, \"eps\": Infinity}", "here.json:1: \"eps\": Infinity");
    refused("{\"list\": [{\"inside\": 1}, -Infinity]}", "\"list\": -Infinity");
    refused("{\"out\": {\"in\": [[NaN]]}}", "\"in\": NaN");
    refused("{\"out\": {\"in\": \"NaN\"}, \"then\"\n: NaN}", "here.json:2: \"then\": NaN");
    refused("[NaN]", "here.json:1: \"\": NaN");
}

static void what_is_no_json_is_refused_by_its_place(void **state)
{
    (void)state;
    refused("", "here.json:");
    refused("{\"a\": 99999999999999999999,\n  \"b\": nan}", "here.json:2:10: invalid token near 'nan'");
    refused("{\"a\": 1, \"a\": 2}", "duplicate");
    refused("{\"a\": 0999999999999999999999}", "here.json:1:");
    refused("{\"a\": -}", "here.json:1:");
    refused("{\"a\": \"open", "here.json:1:");
    refused("{\"a\": \"open\\", "here.json:1:");
    refused("{\"a\": 1e999}", "real number overflow");
    char *deep = malloc(10001);
    assert_non_null(deep);
    memset(deep, '[', 10000);
    deep[10000] = '\0';
    refused(deep, "maximum parsing depth");
    free(deep);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers_of_any_length_are_read),
        cmocka_unit_test(other_numbers_and_texts_stay),
        cmocka_unit_test(what_is_not_finite_is_refused_by_its_key),
        cmocka_unit_test(what_is_no_json_is_refused_by_its_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
