/* The planner decides which layers share a unit. Only rank 0 asks it, because it may read files.
 * tests/engine/fusion_test.c covers this file. */
#include "lib/engine/replan/regroup.h"

#include "lib/base/text/parse_quantity.h"
#include "lib/base/status.h"
#include "lib/engine/replan/replan.h"
#include "lib/engine/runtime.h"
#include "lib/engine/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

sluice_status slc_engine_fuse_bytes(const char *fuse, uint64_t *bytes)
{
    if (!fuse) fuse = slc_setting_text(&slc_engine_settings, "SLUICE_PLAN_FUSE");
    *bytes = !strcmp(fuse, "auto") ? SLC_FUSE_AUTO : 0;
    if (*bytes || !strcmp(fuse, "off")) return SLUICE_OK;
    if (!slc_parse_bytes(fuse, bytes) && *bytes < SLC_FUSE_AUTO) return SLUICE_OK;
    return slc_error(SLUICE_ERR_ARGUMENT, "fuse (SLUICE_PLAN_FUSE) is \"%s\"; give auto, off, or a size as 64KiB",
                     fuse);
}

/* Marks the units that are not fused: tied parameters with their rows, and layers with a strategy of their own. */
static void find_alone(const sluice_runtime *rt, bool *alone)
{
    for (uint32_t u = 0; u < rt->job.unit_count; u++) {
        const slc_unit_state *unit = &rt->units[u];
        const sluice_param *param = unit->looked_up ? unit->looked_up : unit->params[0];
        alone[u] = param->tied || rt->model.layers[param->layer]->forced != SLC_STRATEGIES;
    }
}

static sluice_status ask_planner(sluice_runtime *rt, const slc_plan_request *plan, uint32_t *group)
{
    slc_plan_request asked = *plan;
    bool *alone = calloc((size_t)rt->job.unit_count + 1, sizeof *alone);
    slc_fuse_request request = {.plan = &asked, .alone = alone, .bytes = rt->planning.fuse_bytes};
    if (!alone) return slc_error(SLUICE_ERR_MEMORY, "units");
    find_alone(rt, alone);
    sluice_status status = slc_engine_add_choices(rt, &asked);
    slc_comm_work(rt->comm, "planning");
    if (!status) status = rt->planning.planner.fuse(rt->planning.planner.context, &rt->job, &request, group);
    slc_comm_work(rt->comm, NULL);
    slc_engine_free_choices(&asked);
    free(alone);
    return status;
}

sluice_status slc_engine_fuse_layers(sluice_runtime *rt, const slc_plan_request *plan, uint32_t *last)
{
    uint32_t *group = calloc((size_t)rt->job.unit_count + 1, sizeof *group);
    double missing = !group;
    sluice_status status = sluice_world_all_reduce(rt->world, &missing, 1);
    if (!status && missing > 0)
        status = slc_runtime_alike(rt, slc_error(SLUICE_ERR_MEMORY, "no memory to decide which layers to fuse"));
    if (!status)
        status = slc_runtime_share(rt, rt->rank ? SLUICE_OK : ask_planner(rt, plan, group), group,
                                   rt->job.unit_count * sizeof *group);
    for (uint32_t u = 0; !status && u < rt->job.unit_count; u++)
        if (group[u] != u) last[rt->job.units[group[u]].uses[0].layer] = rt->job.units[u].uses[0].layer;
    free(group);
    return status;
}
