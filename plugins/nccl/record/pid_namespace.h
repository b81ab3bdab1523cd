/* The namespace in which process numbers have a meaning. Any thread. */
#pragma once

#include <stdint.h>
#include <sys/stat.h>

/* Returns the namespace of this process's number; 0: not known. A container has a namespace of its own, in which
 * processes have other numbers than elsewhere, or the numbers of others. */
static inline uint64_t slc_record_pid_namespace(void)
{
    struct stat info;
    return stat("/proc/self/ns/pid", &info) ? 0 : (uint64_t)info.st_ino;
}
