/* A difference between calls is a cause, and so is a crossed order. That ranks wait for each other is reported only for
 * processes that take part in neither. */
#include "bench/nccl/watch/compare.h"

#include "bench/nccl/watch/faults.h"
#include "bench/nccl/watch/waits.h"

#include <stdlib.h>

static bool share_processes(const slc_nccl_finding *a, const slc_nccl_finding *b)
{
    for (size_t i = 0; i < a->involved_count; i++)
        if (a->involved[i] && b->involved[i]) return true;
    return false;
}

static int by_time(const void *a, const void *b)
{
    int64_t x = ((const slc_nccl_finding *)a)->time_ns, y = ((const slc_nccl_finding *)b)->time_ns;
    return x < y ? -1 : x > y;
}

/* Drops the findings from `first` on that share a process with an earlier finding, because they are its consequences.
 * With `earliest_only` the findings from `first` on are sorted by time first, and compared with each other too. */
static void drop_consequences(slc_nccl_findings *findings, size_t first, bool earliest_only)
{
    if (earliest_only && findings->count > first)
        qsort(findings->rows + first, findings->count - first, sizeof *findings->rows, by_time);
    for (size_t i = first; i < findings->count;) {
        bool consequence = false;
        for (size_t k = 0; k < (earliest_only ? i : first) && !consequence; k++)
            consequence = share_processes(&findings->rows[k], &findings->rows[i]);
        if (consequence)
            slc_nccl_finding_drop(findings, i);
        else
            i++;
    }
}

/* Adds the operations that all ranks called and that streams do not finish, or in their place the crossed order that
 * explains them. */
static sluice_status find_unfinished(const slc_nccl_members *all, double stall_s, slc_nccl_findings *findings)
{
    size_t first = findings->count;
    sluice_status status = SLUICE_OK;
    for (size_t i = 0; !status && i < all->communicator_count; i++)
        status = slc_nccl_find_unfinished(all, &all->communicators[i], stall_s, findings);
    size_t end = findings->count;
    if (!status && end > first + 1) status = slc_nccl_find_crossings(all, true, findings);
    if (!status && findings->count > end)
        while (end > first) slc_nccl_finding_drop(findings, --end);
    return status;
}

sluice_status slc_nccl_compare(const slc_nccl_records *records, const double *quiet_s, double stall_s,
                               slc_nccl_findings *out)
{
    slc_nccl_members all;
    slc_nccl_waits waits = {0};
    *out = (slc_nccl_findings){0};
    sluice_status status = slc_nccl_members_find(records, quiet_s, &all);
    for (size_t i = 0; !status && i < all.communicator_count; i++) {
        const slc_nccl_communicator *c = &all.communicators[i];
        status = slc_nccl_find_difference(&all, c, out);
        if (!status) status = slc_nccl_match_exchanges(&all, c, stall_s, out, &waits);
        if (!status) status = slc_nccl_waits_find(&all, c, stall_s, &waits);
    }
    if (!status) status = slc_nccl_find_crossings(&all, false, out);
    if (!status) drop_consequences(out, 0, true);
    size_t known = out->count;
    if (!status) status = slc_nccl_waits_explain(&all, &waits, out);
    if (!status) drop_consequences(out, known, false);
    known = out->count;
    if (!status) status = find_unfinished(&all, stall_s, out);
    if (!status) drop_consequences(out, known, true);
    free(waits.rows);
    slc_nccl_members_free(&all);
    return status;
}
