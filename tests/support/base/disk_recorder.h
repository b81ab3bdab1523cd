/* Records everything that a program's ranks ask of the disk, in the order in which it happens. This file defines the
 * calls of the C library that make, write, cut, synchronize, rename and remove; a call for a path below one folder is
 * recorded, may be made to fail, or ends the process. Writes by other calls than pwrite are not seen, and show as lost.
 * Everything lies in memory that forked ranks share. Include it in one file of a test. */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef enum {
    DISK_MKDIR,
    DISK_CREATE,
    DISK_WRITE,
    DISK_TRUNCATE,
    DISK_SYNC,
    DISK_RENAME,
    DISK_EXCHANGE,
    DISK_UNLINK,
    DISK_RMDIR,
    DISK_RETURNED /* not a call: a save has returned, whose number is `offset` */
} disk_call;

enum { DISK_OPS = 1 << 14, DISK_POOL = 1 << 26, DISK_PATH = 160, DISK_RANKS = 8 };

typedef struct {
    disk_call call;
    char path[DISK_PATH], other[DISK_PATH]; /* relative to the folder; `other`: the name that is renamed to */
    uint64_t offset, bytes, data; /* a write; data: where its bytes begin in the pool; offset: a new length too */
} disk_op;

typedef struct {
    atomic_flag lock;
    char folder[64]; /* "": nothing is watched */
    bool recording, no_exchange;

    /* Call number `at` of a rank from now on (0: the first) fails with `error`; error 0 ends the process instead. */
    int fault_rank, fault_error; /* rank -1: none */
    uint32_t fault_at;
    uint32_t seen[DISK_RANKS]; /* calls that each rank has made since then */
    bool fired;
    disk_call fired_at;

    uint32_t count;
    uint64_t used;
    disk_op ops[DISK_OPS];
    unsigned char pool[DISK_POOL];
} disk_record;

static disk_record *disk;
static int disk_rank; /* the rank of this process */

/* Makes the record that all ranks write to; call it before any fork. */
static inline void disk_open(void)
{
    disk = mmap(NULL, sizeof *disk, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (disk == MAP_FAILED) abort();
    disk->fault_rank = -1;
}

static inline void disk_watch(const char *folder, bool recording)
{
    atomic_flag_clear(&disk->lock); /* a process that was killed may have held it */
    snprintf(disk->folder, sizeof disk->folder, "%s", folder);
    disk->recording = recording;
    disk->no_exchange = false;
    disk->fault_rank = -1;
    disk->count = 0;
    disk->used = 0;
}

static inline void disk_fault(int rank, uint32_t at, int error)
{
    memset(disk->seen, 0, sizeof disk->seen);
    disk->fired = false;
    disk->fault_at = at;
    disk->fault_error = error;
    disk->fault_rank = rank;
}

/* ---- What every call does ---- */

/* Returns the path relative to the folder ("" for the folder itself); NULL: it is not watched. */
static inline const char *disk_inside(const char *path)
{
    size_t length = disk ? strlen(disk->folder) : 0;
    if (!length || !path || strncmp(path, disk->folder, length)) return NULL;
    return path[length] == '/' ? path + length + 1 : path[length] ? NULL : path + length;
}

static inline const char *disk_inside_fd(int fd, char link[PATH_MAX])
{
    char name[64];
    if (!disk || !disk->folder[0]) return NULL;
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(name, link, PATH_MAX - 1);
    link[length > 0 ? length : 0] = 0;
    return disk_inside(link);
}

/* Ranks take turns, so that the record has the order in which things happened. Returns false if the call must fail. */
static inline bool disk_enter(disk_call call)
{
    while (atomic_flag_test_and_set(&disk->lock)) sched_yield();
    bool hit = disk->fault_rank == disk_rank && disk->seen[disk_rank]++ == disk->fault_at;
    if (!hit) return true;
    disk->fired = true;
    disk->fired_at = call;
    atomic_flag_clear(&disk->lock);
    if (!disk->fault_error) raise(SIGKILL);
    errno = disk->fault_error;
    return false;
}

static inline void disk_leave(bool done, disk_op op, const void *data)
{
    int why = errno;
    const char *name = strrchr(op.path, '/');
    bool hidden = (name ? name + 1 : op.path)[0] == '.';
    if (done && disk->recording && !hidden) {
        if (disk->count == DISK_OPS || disk->used + op.bytes > DISK_POOL) abort();
        op.data = disk->used;
        if (data) memcpy(disk->pool + disk->used, data, op.bytes);
        disk->used += op.bytes;
        disk->ops[disk->count++] = op;
    }
    atomic_flag_clear(&disk->lock);
    errno = why;
}

static inline disk_op disk_op_of(disk_call call, const char *path, const char *other)
{
    disk_op op = {.call = call};
    snprintf(op.path, sizeof op.path, "%.*s", DISK_PATH - 1, path);
    snprintf(op.other, sizeof op.other, "%.*s", DISK_PATH - 1, other ? other : "");
    return op;
}

/* Records that the save of this number has returned. */
static inline void disk_returned(uint64_t number)
{
    while (atomic_flag_test_and_set(&disk->lock)) sched_yield();
    disk_leave(true, (disk_op){.call = DISK_RETURNED, .offset = number}, NULL);
}

/* ---- The calls ---- */

int open(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    mode_t mode = flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(args, mode_t) : 0;
    va_end(args);
    const char *inside = flags & O_CREAT ? disk_inside(path) : NULL;
    if (!inside) return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
    if (!disk_enter(DISK_CREATE)) return -1;
    struct stat info;
    bool fresh = lstat(path, &info) != 0 || flags & O_TRUNC;
    int file = (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
    disk_leave(file >= 0 && fresh, disk_op_of(DISK_CREATE, inside, NULL), NULL);
    return file;
}

ssize_t pwrite(int fd, const void *data, size_t bytes, off_t offset)
{
    char link[PATH_MAX];
    const char *inside = disk_inside_fd(fd, link);
    if (!inside) return syscall(SYS_pwrite64, fd, data, bytes, offset);
    if (!disk_enter(DISK_WRITE)) return -1;
    ssize_t put = syscall(SYS_pwrite64, fd, data, bytes, offset);
    disk_op op = disk_op_of(DISK_WRITE, inside, NULL);
    op.offset = (uint64_t)offset;
    op.bytes = put > 0 ? (uint64_t)put : 0;
    disk_leave(put > 0, op, data);
    return put;
}

int ftruncate(int fd, off_t length)
{
    char link[PATH_MAX];
    const char *inside = disk_inside_fd(fd, link);
    if (!inside) return (int)syscall(SYS_ftruncate, fd, length);
    if (!disk_enter(DISK_TRUNCATE)) return -1;
    int code = (int)syscall(SYS_ftruncate, fd, length);
    disk_op op = disk_op_of(DISK_TRUNCATE, inside, NULL);
    op.offset = (uint64_t)length;
    disk_leave(code == 0, op, NULL);
    return code;
}

static inline int disk_sync(long call, int fd)
{
    char link[PATH_MAX];
    const char *inside = disk_inside_fd(fd, link);
    if (!inside) return (int)syscall(call, fd);
    if (!disk_enter(DISK_SYNC)) return -1;
    disk_leave(true, disk_op_of(DISK_SYNC, inside, NULL), NULL); /* a test sees only that it was asked for */
    return 0;
}

int fsync(int fd)
{
    return disk_sync(SYS_fsync, fd);
}

int fdatasync(int fd)
{
    return disk_sync(SYS_fdatasync, fd);
}

int mkdir(const char *path, mode_t mode)
{
    const char *inside = disk_inside(path);
    if (!inside) return (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
    if (!disk_enter(DISK_MKDIR)) return -1;
    int code = (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
    disk_leave(code == 0, disk_op_of(DISK_MKDIR, inside, NULL), NULL);
    return code;
}

int renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags)
{
    const char *inside = disk_inside(from), *inside_to = disk_inside(to);
    if (!inside || !inside_to) return (int)syscall(SYS_renameat2, from_dir, from, to_dir, to, flags);
    disk_call call = flags & RENAME_EXCHANGE ? DISK_EXCHANGE : DISK_RENAME;
    if (!disk_enter(call)) return -1;
    errno = EINVAL;
    bool known = !(flags && disk->no_exchange);
    int code = known ? (int)syscall(SYS_renameat2, from_dir, from, to_dir, to, flags) : -1;
    disk_leave(code == 0, disk_op_of(call, inside, inside_to), NULL);
    return code;
}

int rename(const char *from, const char *to)
{
    return renameat2(AT_FDCWD, from, AT_FDCWD, to, 0);
}

static inline int disk_unlink(const char *path, const char *inside, int flags)
{
    disk_call call = flags & AT_REMOVEDIR ? DISK_RMDIR : DISK_UNLINK;
    if (!disk_enter(call)) return -1;
    int code = (int)syscall(SYS_unlinkat, AT_FDCWD, path, flags);
    disk_leave(code == 0, disk_op_of(call, inside, NULL), NULL);
    return code;
}

int unlinkat(int dir, const char *path, int flags)
{
    char link[PATH_MAX], whole[2 * PATH_MAX];
    if (path[0] == '/' || dir == AT_FDCWD || !disk_inside_fd(dir, link))
        return (int)syscall(SYS_unlinkat, dir, path, flags);
    snprintf(whole, sizeof whole, "%s/%s", link, path);
    return disk_unlink(whole, disk_inside(whole), flags);
}

int unlink(const char *path)
{
    const char *inside = disk_inside(path);
    return inside ? disk_unlink(path, inside, 0) : (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}

int rmdir(const char *path)
{
    const char *inside = disk_inside(path);
    return inside ? disk_unlink(path, inside, AT_REMOVEDIR) : (int)syscall(SYS_unlinkat, AT_FDCWD, path, AT_REMOVEDIR);
}
