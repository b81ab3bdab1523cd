/* Entries that were timed together have the same group, stream and times, so sorting by these puts them next to each
 * other.
 * bench/nccl/nccl_test.c covers this file. */
#include "bench/nccl/summary/time_shares.h"

#include "lib/base/status.h"

#include <stdlib.h>

static int compare(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int by_group(const void *a, const void *b)
{
    const slc_nccl_entry *x = *(const slc_nccl_entry *const *)a, *y = *(const slc_nccl_entry *const *)b;
    int order = compare(x->group, y->group);
    if (!order) order = compare(x->stream, y->stream);
    if (!order) order = compare((uint64_t)x->begin_ns, (uint64_t)y->begin_ns);
    if (!order) order = compare((uint64_t)x->end_ns, (uint64_t)y->end_ns);
    return order ? order : compare(x->index, y->index);
}

static bool timed_together(const slc_nccl_entry *a, const slc_nccl_entry *b)
{
    return (a->flags & SLC_RECORD_GROUPED) && (b->flags & SLC_RECORD_GROUPED) && a->group == b->group &&
           a->stream == b->stream && a->begin_ns == b->begin_ns && a->end_ns == b->end_ns;
}

static void share(const slc_nccl_process *p, const slc_nccl_entry *const *members, size_t count,
                  slc_nccl_time_share *shares)
{
    double seconds = (double)(members[0]->end_ns - members[0]->begin_ns) * 1e-9;
    uint64_t bytes = 0;
    for (size_t i = 0; i < count; i++) bytes += slc_nccl_entry_bytes(p, members[i]);
    for (size_t i = 0; i < count; i++) {
        double part = bytes ? (double)slc_nccl_entry_bytes(p, members[i]) / (double)bytes : 1 / (double)count;
        shares[members[i] - p->entries] = (slc_nccl_time_share){
            .seconds = seconds * part, .members = (uint32_t)count, .first = i == 0, .bytes = bytes};
    }
}

sluice_status slc_nccl_time_shares_find(const slc_nccl_process *process, slc_nccl_time_share *shares)
{
    const slc_nccl_entry **timed = malloc((process->entry_count + 1) * sizeof *timed);
    if (!timed) return slc_error(SLUICE_ERR_MEMORY, "times of %s", process->path);
    size_t count = 0;
    for (size_t i = 0; i < process->entry_count; i++) {
        shares[i] = (slc_nccl_time_share){0};
        if (process->entries[i].end_ns > process->entries[i].begin_ns) timed[count++] = &process->entries[i];
    }
    qsort(timed, count, sizeof *timed, by_group);
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && timed_together(timed[i], timed[end]);) end++;
        share(process, timed + i, end - i, shares);
    }
    free(timed);
    return SLUICE_OK;
}
