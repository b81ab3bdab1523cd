/* Folders are made with all that they lie in, and what stands in their way is named. */
#include "lib/base/file/make_folder.h"
#include "tests/support/base/folder.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static void is_folder(const char *path)
{
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    assert_true(S_ISDIR(info.st_mode));
}

static void all_of_a_path_is_made(void **state)
{
    (void)state;
    works(slc_make_folder(path_of("a/b/c")));
    is_folder(path_of("a/b/c"));
    works(slc_make_folder(path_of("a/b/c")));
    works(slc_make_writable_folder(path_of("a//d/")));
    is_folder(path_of("a/d"));
}

static void a_file_is_in_the_way(void **state)
{
    (void)state;
    write_file("file", "x", 1);
    fails(slc_make_folder(path_of("file")), SLUICE_ERR_PATH, "file");
    fails(slc_make_folder(path_of("file/below")), SLUICE_ERR_PATH, "below");
    fails(slc_make_folder(""), SLUICE_ERR_PATH, "folder");
}

static void a_folder_that_is_locked(void **state)
{
    (void)state;
    if (!geteuid()) {
        print_message("SKIP: a folder without permission: root may write anywhere\n");
        skip();
    }
    works(slc_make_folder(path_of("locked")));
    assert_int_equal(chmod(path_of("locked"), 0500), 0);
    fails(slc_make_writable_folder(path_of("locked")), SLUICE_ERR_PATH, "locked");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_of_a_path_is_made),
        cmocka_unit_test(a_file_is_in_the_way),
        cmocka_unit_test(a_folder_that_is_locked),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
