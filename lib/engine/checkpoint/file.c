/* Writes at given offsets. A file counts only when it has reached the disk.
 * tests/checkpoint/power_loss_test.c covers this file. */
#include "lib/engine/checkpoint/file.h"

#include "lib/base/file/file.h"
#include "lib/base/file/path_error.h"
#include "lib/base/status.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

sluice_status slc_checkpoint_file_create(const char *path, int *file)
{
    unlink(path); /* if this fails, open says why */
    *file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (*file >= 0) return SLUICE_OK;
    int why = errno;
    return slc_error(slc_path_status(why), "cannot write %s: %s%s", path, strerror(why),
                     why == ENOENT ? "; all ranks must share this file system" : "");
}

sluice_status slc_checkpoint_file_write(int file, const char *path, const void *data, uint64_t bytes, uint64_t offset)
{
    const int why = slc_write_at(file, data, bytes, offset);
    return why ? slc_path_error("cannot write", path, why) : SLUICE_OK;
}

sluice_status slc_checkpoint_file_close(int file, const char *path, sluice_status status)
{
    if (file < 0) return status;
    if (!status && fsync(file)) status = slc_path_error("cannot write", path, errno);
    if (close(file) && errno != EINTR && !status) status = slc_path_error("cannot write", path, errno);
    return status;
}

sluice_status slc_checkpoint_file_put(const char *path, const void *data, uint64_t bytes)
{
    int file;
    sluice_status status = slc_checkpoint_file_create(path, &file);
    if (!status) status = slc_checkpoint_file_write(file, path, data, bytes, 0);
    return slc_checkpoint_file_close(file, path, status);
}
