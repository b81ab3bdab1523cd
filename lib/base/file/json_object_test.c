/* Objects are read, with Python's NaN; other values, broken texts and missing files are refused. */
#include "tests/support/base/folder.h"

#include "lib/base/file/json_object.h"

#include <string.h>

static const char *file_of(const char *text)
{
    return write_file("read.json", text, strlen(text));
}

static void an_object_is_read(void **state)
{
    (void)state;
    json_t *root = NULL;
    works(slc_json_object_read(file_of("{\"layers\": 12}"), &root));
    assert_int_equal(json_integer_value(json_object_get(root, "layers")), 12);
    json_decref(root);
}

static void what_is_none_is_refused(void **state)
{
    (void)state;
    json_t *root = NULL;
    fails(slc_json_object_read(file_of("[1]"), &root), SLUICE_ERR_FORMAT, "read.json: is no JSON object");
    fails(slc_json_object_read(file_of("{\"layers\": "), &root), SLUICE_ERR_FORMAT, "read.json:1");
    fails(slc_json_object_read(path_of("nowhere.json"), &root), SLUICE_ERR_PATH, "nowhere.json");
    assert_null(root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_object_is_read),
        cmocka_unit_test(what_is_none_is_refused),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
