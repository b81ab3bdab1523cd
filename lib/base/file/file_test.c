/* Files are told apart: whether they are one decides whether ranks compare what they have read, and the hash of pieces
 * is what they compare. */
#include "lib/base/file/file.h"

#include "tests/support/base/folder.h"
#include "lib/base/hash/fnv.h"

#include <stdio.h>
#include <unistd.h>

static uint64_t identity_of(const char *path)
{
    slc_file file;
    uint64_t hash = SLC_FNV_START;
    works(slc_file_open(path, &file));
    works(slc_file_identity(&file, &hash));
    slc_file_close(&file);
    return hash;
}

static void links_are_one_file(void **state)
{
    (void)state;
    char path[4096], link_path[4096], hard_path[4096];
    snprintf(path, sizeof path, "%s", write_file("one", "abc", 3));
    snprintf(link_path, sizeof link_path, "%s", path_of("link"));
    snprintf(hard_path, sizeof hard_path, "%s", path_of("hard"));
    assert_int_equal(symlink(path, link_path), 0);
    assert_int_equal(link(path, hard_path), 0);
    const uint64_t one = identity_of(path);
    assert_true(identity_of(path) == one);
    assert_true(identity_of(link_path) == one);
    assert_true(identity_of(hard_path) == one);
}

static void a_copy_is_another(void **state)
{
    (void)state;
    char path[4096];
    snprintf(path, sizeof path, "%s", write_file("first", "abc", 3));
    assert_true(identity_of(path) != identity_of(write_file("copy", "abc", 3)));
}

/* Bytes written into a file in place leave its inode and length. A file system may keep times in steps of some
 * milliseconds, so the file is written until the step has passed. */
static void a_change_in_place_is_another(void **state)
{
    (void)state;
    char path[4096];
    snprintf(path, sizeof path, "%s", write_file("changed", "abc", 3));
    const uint64_t before = identity_of(path);
    for (int i = 0; i < 1000 && identity_of(path) == before; i++) {
        usleep(1000);
        FILE *file = fopen(path, "r+");
        assert_non_null(file);
        assert_int_equal(fwrite("x", 1, 1, file), 1);
        assert_int_equal(fclose(file), 0);
    }
    assert_true(identity_of(path) != before);
}

static uint64_t pieces_of(const char *bytes, size_t count)
{
    slc_file file;
    uint64_t hash = SLC_FNV_START;
    works(slc_file_open(write_file("pieces", bytes, count), &file));
    works(slc_file_hash_pieces(&file, &hash));
    slc_file_close(&file);
    return hash;
}

/* Any byte of a short file counts; of a long one its length, its beginning and its end do. */
static void pieces_tell_files_apart(void **state)
{
    (void)state;
    enum { SHORT = (1 << 20) - 5000, LONG = (1 << 20) + 5000 };
    static char bytes[LONG + 1];
    const uint64_t all_short = pieces_of(bytes, SHORT), all_long = pieces_of(bytes, LONG);
    assert_true(pieces_of(bytes, SHORT) == all_short);
    assert_true(pieces_of(bytes, SHORT - 1) != all_short && pieces_of(bytes, LONG + 1) != all_long);
    const size_t places[] = {0, 4095, 4096, SHORT / 2, SHORT - 4096, SHORT - 1};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        bytes[places[i]] = 1;
        assert_true(pieces_of(bytes, SHORT) != all_short);
        bytes[places[i]] = 0;
    }
    for (size_t i = 0; i < 2; i++) {
        bytes[i * (LONG - 1)] = 1;
        assert_true(pieces_of(bytes, LONG) != all_long);
        bytes[i * (LONG - 1)] = 0;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(links_are_one_file),
        cmocka_unit_test(a_copy_is_another),
        cmocka_unit_test(a_change_in_place_is_another),
        cmocka_unit_test(pieces_tell_files_apart),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
