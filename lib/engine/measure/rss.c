/* measure_link_test.c covers this file. */
#include "lib/engine/measure/rss.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* All segments are mapped memfds of one name; those whose inode is not `own` are peers'. */
static uint64_t sum_resident(FILE *file, unsigned long own)
{
    char line[512];
    uint64_t total = 0;
    bool peer = false;
    while (fgets(line, sizeof line, file)) {
        unsigned long from, to, inode, kilobytes;
        if (sscanf(line, "%lx-%lx %*s %*s %*s %lu", &from, &to, &inode) == 3)
            peer = strstr(line, "/memfd:sluice") && inode != own;
        else if (!peer && sscanf(line, "Rss: %lu kB", &kilobytes) == 1)
            total += (uint64_t)kilobytes * 1024;
    }
    return total;
}

uint64_t slc_rss_bytes(const slc_segment *own)
{
    struct stat segment = {0};
    if (own && own->fd >= 0 && fstat(own->fd, &segment)) return 0;
    FILE *file = fopen("/proc/self/smaps", "re");
    if (!file) return 0;
    uint64_t total = sum_resident(file, (unsigned long)segment.st_ino);
    fclose(file);
    return total;
}
