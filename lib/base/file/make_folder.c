/* make_folder_test.c covers this file. */
#include "lib/base/file/make_folder.h"

#include "lib/base/file/path_error.h"
#include "lib/base/file/sync_folder.h"
#include "lib/base/status.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

sluice_status slc_make_folder(const char *path)
{
    char *copy = strdup(path);
    if (!copy) return slc_error(SLUICE_ERR_MEMORY, "the folder %s", path);
    sluice_status status = SLUICE_OK;
    int why = *path ? 0 : ENOENT;
    for (char *at = copy + 1; !why && !status; at++) {
        if (*at && *at != '/') continue;
        char end = *at;
        *at = 0;
        if (!mkdir(copy, 0777))
            status = slc_sync_parent(copy);
        else if (errno != EEXIST)
            why = errno;
        *at = end;
        if (!end) break;
    }
    struct stat info;
    if (!why && !status && (stat(path, &info) || !S_ISDIR(info.st_mode))) why = ENOTDIR;
    free(copy);
    return why ? slc_path_error("cannot make the folder", path, why) : status;
}

sluice_status slc_make_writable_folder(const char *path)
{
    sluice_status status = slc_make_folder(path);
    if (status || !access(path, W_OK | X_OK)) return status;
    return slc_path_error("cannot write into", path, errno);
}
