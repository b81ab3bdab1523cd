/* Entries of a folder. The list is complete before the first visit, so a visitor may add files to the folder.
 * file_kind_test.c covers this file. */
#include "lib/data/folder_entries.h"

#include "lib/base/file/path_error.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int by_bytes(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static sluice_status visit_one(const char *path, const char *name, bool follow, slc_folder_visit visit, void *context)
{
    char full[PATH_MAX];
    struct stat info;
    if (snprintf(full, sizeof full, "%s/%s", path, name) >= PATH_MAX) {
        errno = ENAMETOOLONG;
        return slc_path_error("cannot read", full, errno);
    }
    if (fstatat(AT_FDCWD, full, &info, follow ? 0 : AT_SYMLINK_NOFOLLOW))
        return slc_path_error("cannot read", full, errno);
    return visit(context, full, &info);
}

sluice_status slc_folder_each(const char *path, bool follow, slc_folder_visit visit, void *context)
{
    struct dirent **entries = NULL;
    int found = scandir(path, &entries, visible, by_bytes);
    if (found < 0) return slc_path_error("cannot read", path, errno);
    sluice_status status = SLUICE_OK;
    for (int i = 0; i < found; i++) {
        if (!status) status = visit_one(path, entries[i]->d_name, follow, visit, context);
        free(entries[i]);
    }
    free(entries);
    return status;
}
