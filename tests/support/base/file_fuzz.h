/* A file in memory, for fuzzers of file readers. Only for *_fuzz.c. */
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* Returns the file's path, which is the same in every call. Each call empties the file; *fd is open for writing at its
 * beginning. */
static inline const char *fuzz_file(int *fd)
{
    static int file = -1;
    static char path[40];
    if (file < 0) {
        file = memfd_create("fuzz", MFD_CLOEXEC);
        snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    }
    if (file < 0 || ftruncate(file, 0) || lseek(file, 0, SEEK_SET)) abort();
    *fd = file;
    return path;
}

static inline void fuzz_put(int fd, const void *data, size_t bytes)
{
    if (bytes && write(fd, data, bytes) != (ssize_t)bytes) abort();
}
