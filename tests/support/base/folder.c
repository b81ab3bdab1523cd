#include "tests/support/base/folder.h"

#include "lib/base/status.h"

#include <ftw.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

static char folder[] = "/tmp/sluice-test-XXXXXX";

const char *test_folder(void)
{
    return folder;
}

const char *path_of(const char *name)
{
    static char paths[4][PATH_MAX];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, PATH_MAX, "%s/%s", folder, name);
    return path;
}

const char *write_file(const char *name, const void *content, size_t bytes)
{
    const char *path = path_of(name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(content, 1, bytes, file), bytes);
    assert_int_equal(fclose(file), 0);
    return path;
}

void works(sluice_status status)
{
    if (status) fail_msg("%s: %s", sluice_status_name(status), sluice_last_error());
}

void fails(sluice_status status, sluice_status expected, const char *why)
{
    if (status != expected || !strstr(sluice_last_error(), why))
        fail_msg("%s (%s), not %s (%s)", sluice_status_name(status), sluice_last_error(), sluice_status_name(expected),
                 why);
}

void make_own_folder(char path[64])
{
    snprintf(path, 64, "/tmp/sluice-test-XXXXXX");
    assert_non_null(mkdtemp(path));
}

void make_folder_in_memory(char path[64])
{
    struct statvfs room;
    snprintf(path, 64, "/dev/shm/sluice-test-XXXXXX");
    const bool fits = !statvfs("/dev/shm", &room) && (uint64_t)room.f_bavail * room.f_frsize >= (uint64_t)64 << 20;
    if (!fits || !mkdtemp(path)) make_own_folder(path);
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *place)
{
    (void)info, (void)kind, (void)place;
    return remove(path), 0;
}

void remove_tree(const char *path)
{
    nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    if (!access(path, F_OK)) fail_msg("%s is not removed", path);
}

int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

int empty_folder(void **state)
{
    (void)state;
    char command[PATH_MAX];
    snprintf(command, sizeof command, "rm -rf %s/*", folder);
    return system(command);
}

int remove_folder(void **state)
{
    (void)state;
    remove_tree(folder);
    return 0;
}
