/* A file's path in a folder, and a folder that is too long for one. */
#include "tests/support/base/folder.h"

#include "lib/base/file/path_in.h"

#include <string.h>

static void a_slash_is_between(void **state)
{
    (void)state;
    char path[PATH_MAX];
    works(slc_path_in("/tmp/run", "config.json", path));
    assert_string_equal(path, "/tmp/run/config.json");
}

static void the_longest_path_fits(void **state)
{
    (void)state;
    char path[PATH_MAX], folder[PATH_MAX];
    memset(folder, 'a', sizeof folder);
    folder[PATH_MAX - 3] = 0; /* a slash, a letter and the 0 follow it */
    works(slc_path_in(folder, "b", path));
    assert_int_equal(strlen(path), PATH_MAX - 1);
    fails(slc_path_in(folder, "bc", path), SLUICE_ERR_ARGUMENT, "the path of \"bc\" is too long");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slash_is_between),
        cmocka_unit_test(the_longest_path_fits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
