/* A test can see only that synchronizing was asked for: tests/checkpoint/power_loss_test.c and
 * bench/train/log/run_log_test.c cover this file. */
#include "lib/base/file/sync_folder.h"

#include "lib/base/file/path_error.h"
#include "lib/base/status.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static sluice_status cannot_synchronize(const char *path)
{
    const int why = errno;
    return slc_path_error("cannot synchronize", path, why);
}

sluice_status slc_sync_folder(const char *path)
{
    const int folder = open(path, O_RDONLY | O_CLOEXEC | O_DIRECTORY);
    if (folder < 0) return errno == EACCES ? SLUICE_OK : cannot_synchronize(path);
    const bool done = !fsync(folder) || errno == EINVAL || errno == ENOTSUP || errno == EROFS;
    sluice_status status = done ? SLUICE_OK : cannot_synchronize(path);
    close(folder);
    return status;
}

sluice_status slc_sync_parent(const char *path)
{
    char *copy = strdup(path);
    if (!copy) return slc_error(SLUICE_ERR_MEMORY, "the folder of %s", path);
    sluice_status status = slc_sync_folder(dirname(copy));
    free(copy);
    return status;
}
