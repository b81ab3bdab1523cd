/* Drafts touch nothing that they did not make: a user's own files, links of others, two writers of one target. */
#include "lib/base/file/draft.h"
#include "tests/support/base/folder.h"
#include "lib/base/file/json_file.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void put(slc_draft *draft, const char *text)
{
    assert_int_equal(write(draft->fd, text, strlen(text)), strlen(text));
}

static void holds(const char *path, const char *expected)
{
    char text[100] = "";
    FILE *file = fopen(path, "r");
    if (!file) fail_msg("%s is not there", path);
    size_t length = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[length] = 0;
    assert_string_equal(text, expected);
}

/* The files of the test's folder. */
static int count_files(void)
{
    DIR *folder = opendir(test_folder());
    int count = 0;
    for (struct dirent *entry; (entry = readdir(folder));)
        count += strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..");
    closedir(folder);
    return count;
}

static void a_draft_takes_its_targets_name(void **state)
{
    (void)state;
    slc_draft draft;
    const char *path = write_file("result", "old", 3);
    int before = count_files();
    works(slc_draft_open(path, &draft));
    put(&draft, "new");
    holds(path, "old");
    works(slc_draft_keep(&draft, path));
    holds(path, "new");
    assert_int_equal(count_files(), before);
    assert_null(draft.path);

    works(slc_draft_open(path, &draft));
    put(&draft, "newer");
    slc_draft_drop(&draft);
    slc_draft_drop(&draft); /* SLC_DRAFT_NONE */
    holds(path, "new");
    assert_int_equal(count_files(), before);
}

static void two_writers_have_a_draft_each(void **state)
{
    (void)state;
    slc_draft first, second;
    const char *path = path_of("shared");
    works(slc_draft_open(path, &first));
    works(slc_draft_open(path, &second));
    assert_string_not_equal(first.path, second.path);
    put(&first, "first");
    put(&second, "second");
    works(slc_draft_keep(&second, path));
    holds(path, "second");
    works(slc_draft_keep(&first, path));
    holds(path, "first");
}

/* A file is no longer written through NAME.part, a name that anyone can guess: a user's own file of that name, and the
 * file that a link of that name leads to, stay as they are. */
static void what_others_made_stays(void **state)
{
    (void)state;
    char victim[PATH_MAX], own[PATH_MAX], link[PATH_MAX];
    snprintf(victim, sizeof victim, "%s", write_file("victim", "precious", 8));
    snprintf(own, sizeof own, "%s", write_file("x.json.part", "mine", 4));
    works(slc_json_file_write(path_of("x.json"), "{}"));
    holds(own, "mine");
    holds(path_of("x.json"), "{}");

    snprintf(link, sizeof link, "%s", path_of("y.json.part"));
    assert_int_equal(symlink(victim, link), 0);
    works(slc_json_file_write(path_of("y.json"), "{}"));
    holds(victim, "precious");

    /* A link in the target's own place is replaced, not followed. */
    assert_int_equal(symlink(victim, path_of("z.json")), 0);
    works(slc_json_file_write(path_of("z.json"), "{}"));
    holds(victim, "precious");
    holds(path_of("z.json"), "{}");
}

static void errors_name_the_target(void **state)
{
    (void)state;
    slc_draft draft;
    fails(slc_draft_open(path_of("missing/result"), &draft), SLUICE_ERR_PATH, "missing/result");
    assert_null(draft.path);
    works(slc_draft_open(path_of("folder"), &draft));
    assert_int_equal(mkdir(path_of("folder"), 0777), 0);
    int before = count_files();
    fails(slc_draft_keep(&draft, path_of("folder")), SLUICE_ERR_PATH, "folder");
    assert_int_equal(count_files(), before - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_draft_takes_its_targets_name),
        cmocka_unit_test(two_writers_have_a_draft_each),
        cmocka_unit_test(what_others_made_stays),
        cmocka_unit_test(errors_name_the_target),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
