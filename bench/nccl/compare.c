/* A difference between calls is a cause, and so is a crossed order; that ranks wait for each other afterwards is told
 * only of processes that take part in none. */
#include "bench/nccl/compare.h"

#include "bench/nccl/crossings.h"
#include "bench/nccl/differences.h"
#include "bench/nccl/exchanges.h"
#include "bench/nccl/waits.h"

#include <stdlib.h>

static bool share_processes(const slc_nccl_finding *a, const slc_nccl_finding *b)
{
    for (size_t i = 0; i < a->involved_count; i++)
        if (a->involved[i] && b->involved[i]) return true;
    return false;
}

/* Findings from `first` on that share a process with an earlier one are its consequences. */
static void drop_consequences(slc_nccl_findings *findings, size_t first)
{
    for (size_t i = first; i < findings->count;) {
        bool consequence = false;
        for (size_t k = 0; k < first && !consequence; k++)
            consequence = share_processes(&findings->rows[k], &findings->rows[i]);
        if (consequence)
            slc_nccl_finding_drop(findings, i);
        else
            i++;
    }
}

static int by_time(const void *a, const void *b)
{
    int64_t x = ((const slc_nccl_finding *)a)->time_ns, y = ((const slc_nccl_finding *)b)->time_ns;
    return x < y ? -1 : x > y;
}

/* Keeps the earliest finding of those that share processes. */
static void keep_earliest(slc_nccl_findings *findings)
{
    if (findings->count) qsort(findings->rows, findings->count, sizeof *findings->rows, by_time);
    for (size_t i = 1; i < findings->count;) {
        bool later = false;
        for (size_t k = 0; k < i && !later; k++) later = share_processes(&findings->rows[k], &findings->rows[i]);
        if (later)
            slc_nccl_finding_drop(findings, i);
        else
            i++;
    }
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
    if (!status) status = slc_nccl_find_crossings(&all, out);
    if (!status) keep_earliest(out);
    size_t proven = out->count;
    if (!status) status = slc_nccl_waits_explain(&all, &waits, out);
    if (!status) drop_consequences(out, proven);
    free(waits.rows);
    slc_nccl_members_free(&all);
    return status;
}
