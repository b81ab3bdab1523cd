/* A file that grows has whole pieces and nothing else at every moment, also if the disk is full for a while. */
#include "bench/cli/output/growing_file.h"
#include "tests/support/base/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static void holds(const char *name, const char *expected)
{
    char text[256] = "";
    const int file = open(path_of(name), O_RDONLY);
    assert_true(file >= 0);
    assert_true(read(file, text, sizeof text - 1) >= 0);
    close(file);
    assert_string_equal(text, expected);
}

static bool put(slc_growing_file *file, const char *text)
{
    return slc_growing_file_put(file, text, strlen(text));
}

static void pieces_are_there_at_once(void **state)
{
    (void)state;
    slc_growing_file file;
    works(slc_growing_file_open(path_of("new"), 0, &file));
    assert_true(put(&file, "one\n"));
    holds("new", "one\n");
    assert_true(put(&file, "two\n"));
    holds("new", "one\ntwo\n");
    works(slc_growing_file_close(&file));
    holds("new", "one\ntwo\n");
}

/* A file that goes on loses the lines that are not kept when the first new piece is written, and not when it is opened:
 * a run that writes nothing leaves the file as it was. */
static void a_file_that_goes_on(void **state)
{
    (void)state;
    slc_growing_file file;
    write_file("old", "one\ntwo\nhal", 11);
    works(slc_growing_file_open(path_of("old"), 4, &file));
    holds("old", "one\ntwo\nhal");
    assert_true(put(&file, "2\n"));
    holds("old", "one\n2\n");
    works(slc_growing_file_close(&file));
}

static void no_file_is_wanted(void **state)
{
    (void)state;
    slc_growing_file file;
    works(slc_growing_file_open(NULL, 0, &file));
    assert_true(put(&file, "one\n"));
    works(slc_growing_file_close(&file));
}

static void limit_files_to(rlim_t bytes)
{
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* Only half of the second piece fits, as on a disk that is full: the piece is lost as a whole, which is told once, and
 * the next ones come after the first. */
static void a_disk_that_is_full_for_a_while(void **state)
{
    (void)state;
    slc_growing_file file;
    signal(SIGXFSZ, SIG_IGN);
    works(slc_growing_file_open(path_of("full"), 0, &file));
    assert_true(put(&file, "first\n"));
    limit_files_to(8);
    assert_false(put(&file, "second\n"));
    assert_int_equal(file.why, EFBIG);
    holds("full", "first\n");
    assert_true(put(&file, "third\n"));
    limit_files_to(RLIM_INFINITY);
    assert_true(put(&file, "fourth\n"));
    holds("full", "first\nfourth\n");
    assert_int_equal(file.lost, 2);
    fails(slc_growing_file_close(&file), SLUICE_ERR_IO, "full");
}

static void a_device_without_room(void **state)
{
    (void)state;
    slc_growing_file file;
    works(slc_growing_file_open("/dev/full", 0, &file));
    assert_false(put(&file, "one\n"));
    fails(slc_growing_file_close(&file), SLUICE_ERR_IO, "/dev/full");
    fails(slc_growing_file_open(path_of("nowhere/file"), 0, &file), SLUICE_ERR_PATH, "nowhere");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_are_there_at_once), cmocka_unit_test(a_file_that_goes_on),
        cmocka_unit_test(no_file_is_wanted),        cmocka_unit_test(a_disk_that_is_full_for_a_while),
        cmocka_unit_test(a_device_without_room),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
