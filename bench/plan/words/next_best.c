/* A row's layers are changed together, as the row's other figures are sums.
 * tests/command/plan/plan_table_test.sh covers this file. */
#include "bench/plan/words/decisions.h"

#include "lib/base/status.h"

#include <stdlib.h>

/* Marks the units of a row; returns whether there are any. */
static bool mark_row(const slc_decision *all, uint32_t count, uint32_t row, uint32_t units, bool *change)
{
    bool any = false;
    for (uint32_t u = 0; u < units; u++) change[u] = false;
    for (uint32_t i = 0; i < count; i++) {
        if (all[i].row != row || all[i].unit == SLC_NONE) continue;
        change[all[i].unit] = any = true;
    }
    return any;
}

sluice_status slc_decisions_weigh_others(const slc_shown_plan *shown, const slc_plan_request *made_by, double effort_s,
                                         slc_other_choice *others)
{
    const slc_job *job = &shown->profile->job;
    slc_decision *all = NULL;
    uint32_t count = 0, rows = 0;
    sluice_status status = slc_decisions_list(shown, &all, &count, &rows);
    bool *change = calloc((size_t)job->unit_count + 1, sizeof *change);
    slc_plan_request request = *made_by;
    request.budget_bytes = shown->budget_bytes;
    request.effort_s = rows ? effort_s / rows : 0;
    if (!status && !change) status = slc_error(SLUICE_ERR_MEMORY, "table of %u layers", job->layer_count);
    for (uint32_t u = 0; u < job->unit_count; u++) others[u] = (slc_other_choice){.strategy = SLC_STRATEGIES};
    for (uint32_t r = 0; !status && r < rows; r++) {
        slc_other_choice one = {.strategy = SLC_STRATEGIES};
        if (mark_row(all, count, r, job->unit_count, change))
            status = slc_other_choice_find(job, &request, shown->plan, change, &one);
        for (uint32_t u = 0; u < job->unit_count; u++)
            if (change[u]) others[u] = one;
    }
    free(change);
    free(all);
    return status;
}
