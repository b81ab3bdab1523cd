/* Each piece is written at the place that it is to have, so that half a piece that a full disk left is written over. */
#include "bench/cli/output/growing_file.h"

#include "bench/cli/output/result_file.h"
#include "lib/base/file/path_error.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

sluice_status slc_growing_file_open(const char *path, uint64_t keep, slc_growing_file *out)
{
    struct stat info;
    *out = SLC_GROWING_FILE_NONE;
    if (!path) return SLUICE_OK;
    const int fd =
        slc_is_standard_output(path) ? STDOUT_FILENO : open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY, 0666);
    if (fd < 0) return slc_path_error("cannot write", path, errno);
    *out = (slc_growing_file){.path = path, .fd = fd, .bytes = keep};
    out->regular = fd != STDOUT_FILENO && !fstat(fd, &info) && S_ISREG(info.st_mode);
    return SLUICE_OK;
}

/* Returns 0 or an errno. */
static int write_all(const slc_growing_file *file, const char *piece, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        const ssize_t written = file->regular
                                    ? pwrite(file->fd, piece + done, bytes - done, (off_t)(file->bytes + done))
                                    : write(file->fd, piece + done, bytes - done);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return written ? errno : ENOSPC;
        done += (size_t)written;
    }
    return 0;
}

static int cut_to_kept(slc_growing_file *file)
{
    if (file->begun || !file->regular) return 0;
    if (ftruncate(file->fd, (off_t)file->bytes)) return errno;
    file->begun = true;
    return 0;
}

bool slc_growing_file_put(slc_growing_file *file, const void *piece, size_t bytes)
{
    if (!file->path) return true;
    int why = cut_to_kept(file);
    if (!why) why = write_all(file, piece, bytes);
    if (!why) {
        file->bytes += bytes;
        return true;
    }
    if (file->begun && ftruncate(file->fd, (off_t)file->bytes)) why = errno; /* half a piece is no piece */
    if (!file->why) file->why = why;
    return file->lost++ > 0;
}

sluice_status slc_growing_file_close(slc_growing_file *file)
{
    if (!file->path) return SLUICE_OK;
    int why = file->why;
    if (file->fd != STDOUT_FILENO && close(file->fd) && !why) why = errno;
    sluice_status status = why ? slc_path_error("cannot write", file->path, why) : SLUICE_OK;
    *file = SLC_GROWING_FILE_NONE;
    return status;
}
