/* What memory was planned, claimed and is resident. */
#include "lib/engine/measure/rss.h"
#include "lib/engine/runtime.h"

#include "lib/base/sized.h"
#include "lib/base/status.h"

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

sluice_status sluice_runtime_memory(const sluice_runtime *rt, sluice_memory_report *report)
{
    if (!rt || !report) return slc_error(SLUICE_ERR_ARGUMENT, "runtime_memory: no runtime or no report given");
    if (!rt->arena) return slc_error(SLUICE_ERR_ORDER, "runtime_memory: before commit");
    sluice_status status = slc_sized_check("sluice_memory_report", NULL, report, sizeof *report);
    if (status) return status;
    sluice_memory_report made = {.budget_bytes = rt->budget_bytes,
                                 .planned_bytes = rt->most_arena_bytes + rt->reserved_bytes,
                                 .peak_bytes = slc_arena_peak(rt->arena),
                                 .rss_bytes = slc_rss_bytes(slc_arena_segment(rt->arena)),
                                 .rss_commit_bytes = rt->rss_commit_bytes};
    for (int c = 0; c < SLC_MEMORY_CATEGORIES; c++) {
        uint64_t peak = slc_arena_category_peak(rt->arena, (slc_memory_category)c);
        if (!peak) continue;
        made.categories[made.category_count++] =
            (sluice_memory_category){slc_memory_category_name((slc_memory_category)c), peak};
    }
    status = slc_engine_account_activations(rt, &made);
    if (!status) slc_sized_write(&made, sizeof made, report);
    return status;
}

uint64_t sluice_runtime_dp_bytes(const sluice_runtime *rt)
{
    return rt->dp_bytes;
}
