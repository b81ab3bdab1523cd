/* A file in memory, which both sides map. tests/command/measure/bench_test.sh covers this file. */
#include "bench/sweep/folder/under_way.h"

#include "lib/base/status.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

sluice_status slc_under_way_attach(int fd, slc_under_way **out)
{
    void *memory = mmap(NULL, sizeof **out, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    *out = memory == MAP_FAILED ? NULL : memory;
    return *out ? SLUICE_OK : slc_error(SLUICE_ERR_SYSTEM, "memory shared with the launcher: %s", strerror(errno));
}

sluice_status slc_under_way_create(slc_under_way **out, int *fd)
{
    *out = NULL;
    *fd = memfd_create("sluice bench", 0);
    if (*fd >= 0 && !ftruncate(*fd, sizeof **out)) return slc_under_way_attach(*fd, out);
    return slc_error(SLUICE_ERR_SYSTEM, "memory to share with the ranks: %s", strerror(errno));
}

void slc_under_way_detach(slc_under_way *way)
{
    if (way) munmap(way, sizeof *way);
}
