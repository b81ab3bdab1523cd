/* Reads a kept plan. lib/plan/json checks that it is of this job, and the validator that it may run; here it is held
 * against what the request forces, and against the budget. tests/engine/plan_file_test.c covers this file. */
#include "sched/planner/kept.h"

#include "lib/base/file/json_file.h"
#include "lib/base/status.h"
#include "lib/plan/fused_job.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* ---- Its units ---- */

/* The next unit of the chain of neighbouring layers that begins before it; unit_count: there is none. */
static uint32_t next_in_chain(const slc_job *job, uint32_t unit)
{
    uint32_t next = unit + 1;
    while (next < job->unit_count && !slc_units_join(&job->units[unit], &job->units[next])) next++;
    return next;
}

/* Joins the units first, ..., last if `name` is that of their fused unit, which is no longer than a base block. */
static void join_if_named(const slc_job *job, const char *name, uint32_t first, uint32_t *group)
{
    const char *begin = job->units[first].name;
    size_t length = strlen(begin);
    if (strncmp(name, begin, length) || strncmp(name + length, "..", 2)) return;
    uint32_t last = first;
    uint64_t elements = job->units[first].elements;
    while (last < job->unit_count && strcmp(job->units[last].name, name + length + 2)) {
        last = next_in_chain(job, last);
        if (last < job->unit_count) elements += job->units[last].elements;
    }
    if (last == job->unit_count || last == first || elements > job->units[first].block_elements) return;
    for (uint32_t u = first; u != last;) group[u = next_in_chain(job, u)] = first;
}

sluice_status slc_kept_groups(const slc_job *job, const char *path, uint32_t *group)
{
    char *text;
    size_t length;
    for (uint32_t u = 0; u < job->unit_count; u++) group[u] = u;
    sluice_status status = slc_json_file_read(path, &text, &length);
    if (status) return status == SLUICE_ERR_MEMORY ? status : SLUICE_OK;
    json_t *root = json_loadb(text, length, 0, NULL), *units, *unit;
    size_t i;
    free(text);
    units = json_object_get(json_object_get(root, "job"), "units");
    json_array_foreach (units, i, unit) {
        const char *name = json_string_value(json_object_get(unit, "name"));
        for (uint32_t u = 0; name && u < job->unit_count; u++)
            if (group[u] == u) join_if_named(job, name, u, group);
    }
    json_decref(root);
    return SLUICE_OK;
}

/* ---- What it may do ---- */

static sluice_status check_strategies(const slc_job *job, const slc_plan_request *request, const slc_plan *plan)
{
    for (uint32_t u = 0; request->forced && u < job->unit_count; u++)
        if (request->forced[u] != SLC_STRATEGIES && request->forced[u] != plan->strategies[u])
            return slc_error(SLUICE_ERR_ARGUMENT, "layer \"%s\" is %s in the plan, and the program wants it to be %s",
                             job->units[u].name, slc_strategy_name(plan->strategies[u]),
                             slc_strategy_name(request->forced[u]));
    return SLUICE_OK;
}

static sluice_status check_recomputation(const slc_job *job, const slc_plan_request *request, const slc_plan *plan)
{
    for (uint32_t l = 0; request->recompute && l < job->layer_count; l++) {
        const bool does = plan->recompute && plan->recompute[l];
        if (request->recompute[l] == 2 || request->recompute[l] == does) continue;
        if (!job->can_recompute || !job->can_recompute[l]) continue;
        return slc_error(SLUICE_ERR_ARGUMENT, "the plan %s layer \"%s\", and recompute is %s",
                         does ? "recomputes" : "does not recompute", job->layers[l], does ? "none" : "all");
    }
    return SLUICE_OK;
}

static sluice_status check_updates(const slc_plan_request *request, const slc_plan *plan)
{
    for (uint32_t i = 0; request->updates == SLC_UPDATES_COMMUNICATION && i < plan->train.item_count; i++)
        if (plan->train.items[i].on_compute)
            return slc_error(SLUICE_ERR_ARGUMENT, "the plan updates on the compute threads, which this optimizer "
                                                  "cannot do");
    return SLUICE_OK;
}

static sluice_status check_budget(const slc_job *job, const slc_plan *plan, uint64_t budget_bytes)
{
    const uint64_t needed = plan->arena_bytes + job->reserved_bytes;
    if (!budget_bytes || needed <= budget_bytes) return SLUICE_OK;
    return slc_error(
        SLUICE_ERR_BUDGET,
        "the plan needs %llu bytes (%.1f MiB), and config.budget_bytes is %llu (%.1f MiB): raise it, or leave "
        "config.plan_file out",
        (unsigned long long)needed, (double)needed / 0x1p20, (unsigned long long)budget_bytes,
        (double)budget_bytes / 0x1p20);
}

sluice_status slc_kept_plan(const slc_job *job, const slc_plan_request *request, slc_plan_answer *answer)
{
    slc_plan *plan;
    sluice_status status = slc_plan_read(job, request->kept, &plan);
    if (status) return status == SLUICE_ERR_FORMAT ? status : slc_error_context(status, "config.plan_file");
    status = check_strategies(job, request, plan);
    if (!status) status = check_recomputation(job, request, plan);
    if (!status) status = check_updates(request, plan);
    if (!status) status = check_budget(job, plan, answer->budget_bytes);
    if (!status) {
        answer->plan = plan;
        return SLUICE_OK;
    }
    slc_plan_destroy(plan);
    return slc_error_context(status, "plan %s", request->kept);
}
