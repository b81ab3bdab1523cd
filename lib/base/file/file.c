/* Regular files read at given places. They are opened without waiting, so that a pipe does not block before it is
 * refused. */
#include "lib/base/file/file.h"

#include "lib/base/host/boot_id.h"
#include "lib/base/file/path_error.h"
#include "lib/base/hash/crc32c.h"
#include "lib/base/hash/fnv.h"
#include "lib/base/status.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

sluice_status slc_file_open(const char *path, slc_file *out)
{
    *out = SLC_FILE_NONE;
    struct stat info;
    slc_file file = {.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
    if (file.fd < 0) return slc_path_error("cannot read", path, errno);
    sluice_status status = SLUICE_OK;
    if (fstat(file.fd, &info))
        status = slc_path_error("cannot read", path, errno);
    else if (!S_ISREG(info.st_mode))
        status = slc_error(SLUICE_ERR_ARGUMENT, "%s is not a regular file", path);
    else if (!(file.path = strdup(path)))
        status = slc_error(SLUICE_ERR_MEMORY, "name of %s", path);
    if (status) {
        close(file.fd);
        return status;
    }
    file.bytes = (uint64_t)info.st_size;
    *out = file;
    return SLUICE_OK;
}

void slc_file_close(slc_file *file)
{
    if (file->fd >= 0) close(file->fd);
    free(file->path);
    *file = SLC_FILE_NONE;
}

sluice_status slc_file_read(const slc_file *file, uint64_t first, size_t count, void *out)
{
    char *at = out;
    while (count) {
        ssize_t got = pread(file->fd, at, count, (off_t)first);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return slc_path_error("cannot read", file->path, errno);
        if (got == 0)
            return slc_error(SLUICE_ERR_IO, "%s has become shorter than the %llu bytes it had; start again", file->path,
                             (unsigned long long)file->bytes);
        at += got;
        first += (uint64_t)got;
        count -= (size_t)got;
    }
    return SLUICE_OK;
}

int slc_write_at(int fd, const void *data, uint64_t bytes, uint64_t offset)
{
    for (const char *at = data; bytes;) {
        ssize_t put = pwrite(fd, at, bytes, (off_t)offset);
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) return put ? errno : ENOSPC;
        at += put;
        offset += (uint64_t)put;
        bytes -= (uint64_t)put;
    }
    return 0;
}

/* FNV goes byte by byte; CRC-32C of a piece takes eight at a time, as fast as memory gives them. */
sluice_status slc_file_hash(const slc_file *file, uint64_t *hash)
{
    enum { PIECE = 1 << 20 };
    unsigned char *piece = malloc(PIECE);
    if (!piece) return slc_error(SLUICE_ERR_MEMORY, "reading %s", file->path);
    sluice_status status = SLUICE_OK;
    *hash = slc_fnv(*hash, &file->bytes, sizeof file->bytes);
    for (uint64_t at = 0; !status && at < file->bytes; at += PIECE) {
        size_t count = file->bytes - at < PIECE ? (size_t)(file->bytes - at) : PIECE;
        status = slc_file_read(file, at, count, piece);
        if (status) break;
        uint32_t crc = slc_crc32c(0, piece, count);
        *hash = slc_fnv(*hash, &crc, sizeof crc);
    }
    free(piece);
    return status;
}

sluice_status slc_file_hash_pieces(const slc_file *file, uint64_t *hash)
{
    enum { PIECE = 4096, MOST_PIECES = 256 };
    unsigned char piece[PIECE];
    const uint64_t pieces =
        file->bytes <= (uint64_t)PIECE * MOST_PIECES ? (file->bytes + PIECE - 1) / PIECE : MOST_PIECES;
    const uint64_t last = file->bytes > PIECE ? file->bytes - PIECE : 0;
    *hash = slc_fnv(*hash, &file->bytes, sizeof file->bytes);
    for (uint64_t i = 0; i < pieces; i++) {
        uint64_t first = pieces < MOST_PIECES ? i * PIECE : (uint64_t)((double)last * (double)i / (double)(pieces - 1));
        if (i + 1 == pieces && first < last) first = last;
        const size_t count = file->bytes - first < PIECE ? (size_t)(file->bytes - first) : PIECE;
        sluice_status status = slc_file_read(file, first, count, piece);
        if (status) return status;
        *hash = slc_fnv(*hash, piece, count);
    }
    return SLUICE_OK;
}

sluice_status slc_file_identity(const slc_file *file, uint64_t *hash)
{
    char boot[SLC_BOOT_ID_BYTES];
    struct stat info;
    if (!slc_boot_id(boot)) return slc_error(SLUICE_ERR_IO, "cannot read the name of the running kernel");
    if (fstat(file->fd, &info)) return slc_path_error("cannot read", file->path, errno);
    const uint64_t numbers[] = {info.st_dev, info.st_ino, (uint64_t)info.st_size, (uint64_t)info.st_ctim.tv_sec,
                                (uint64_t)info.st_ctim.tv_nsec};
    *hash = slc_fnv(*hash, boot, sizeof boot);
    *hash = slc_fnv(*hash, numbers, sizeof numbers);
    return SLUICE_OK;
}
