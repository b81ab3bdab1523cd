/* A wrong path and a failing disk have different statuses. */
#include "tests/support/base/folder.h"

#include "lib/base/file/file.h"
#include "lib/base/file/json_file.h"
#include "lib/base/file/path_error.h"
#include "lib/base/status.h"

#include <errno.h>
#include <string.h>

static void what_cannot_be_opened_is_the_path(void **state)
{
    (void)state;
    char long_name[400] = "/";
    slc_file file;
    memset(long_name + 1, 'a', sizeof long_name - 2);
    write_file("text", "words", 5);
    fails(slc_file_open(path_of("nowhere"), &file), SLUICE_ERR_PATH, "No such file");
    fails(slc_file_open(path_of("text/below"), &file), SLUICE_ERR_PATH, "Not a directory");
    fails(slc_file_open(long_name, &file), SLUICE_ERR_PATH, "too long");
    fails(slc_json_file_write(path_of("nowhere/out"), "{}"), SLUICE_ERR_PATH, "No such file");
    fails(slc_json_file_write("/dev/full", "{}"), SLUICE_ERR_IO, "No space left");
}

static void the_disk_is_no_mistake(void **state)
{
    (void)state;
    assert_int_equal(slc_path_status(EACCES), SLUICE_ERR_PATH);
    assert_int_equal(slc_path_status(EIO), SLUICE_ERR_IO);
    assert_int_equal(slc_path_status(ENOSPC), SLUICE_ERR_IO);
    assert_int_equal(slc_path_status(EMFILE), SLUICE_ERR_IO);
}

static void the_line_names_path_and_reason(void **state)
{
    (void)state;
    fails(slc_path_error("cannot write", "/there/a", EACCES), SLUICE_ERR_PATH,
          "cannot write /there/a: Permission denied");
}

static void what_was_good_has_vanished(void **state)
{
    (void)state;
    fails(slc_path_was_good(slc_error(SLUICE_ERR_PATH, "cannot read a")), SLUICE_ERR_IO, "cannot read a");
    assert_int_equal(slc_last_status(), SLUICE_ERR_IO);
    assert_int_equal(slc_path_was_good(slc_error(SLUICE_ERR_FORMAT, "b")), SLUICE_ERR_FORMAT);
    assert_int_equal(slc_path_was_good(SLUICE_OK), SLUICE_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_cannot_be_opened_is_the_path),
        cmocka_unit_test(the_disk_is_no_mistake),
        cmocka_unit_test(the_line_names_path_and_reason),
        cmocka_unit_test(what_was_good_has_vanished),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
