/* Requests to the planner: the first one, the one that was made last, and what layers want for themselves.
 * tests/engine/replan_test.c covers this file. */
#include "lib/base/status.h"
#include "lib/engine/replan/replan.h"
#include "lib/engine/runtime.h"
#include "lib/plan/roles.h"

#include <stdlib.h>
#include <string.h>

sluice_status slc_engine_first_request(sluice_runtime *rt, slc_plan_request *request)
{
    *request = (slc_plan_request){.strategy = rt->planning.strategy,
                                  .schedule = rt->planning.schedule,
                                  .budget_bytes = rt->config.budget_bytes,
                                  .budget_of_dp = rt->config.budget_of_dp,
                                  .kept = rt->planning.kept};
    return slc_engine_least_budget(rt, &request->budget_bytes);
}

slc_plan_request slc_engine_standing_request(const sluice_runtime *rt)
{
    return (slc_plan_request){.strategy = rt->planning.strategy_now ? rt->planning.strategy_now : rt->planning.strategy,
                              .schedule = rt->planning.schedule_now ? rt->planning.schedule_now : rt->planning.schedule,
                              .budget_bytes = rt->current.budget_bytes};
}

/* Says whether a layer recomputes: 0 for no, 1 for yes, 2 if the planner chooses. */
static uint8_t recompute_choice(const sluice_runtime *rt, const sluice_layer *layer)
{
    const sluice_recompute choice = rt->config.recompute;
    if (!layer->can_recompute || choice == SLUICE_RECOMPUTE_NONE) return 0;
    return choice == SLUICE_RECOMPUTE_ALL ? 1 : 2;
}

/* Returns true if ranks hold different values of the unit, since a local step of a compressed optimizer. */
static bool has_moved(const slc_unit_state *unit)
{
    bool moved = false;
    for (uint32_t p = 0; p < unit->param_count; p++) moved |= unit->params[p]->moved;
    return moved;
}

/* Returns the strategy that the program forces on a unit, which is that of the layer that adds its parameters; for rows
 * there is only one strategy. A unit whose values differ from rank to rank keeps its own. */
static slc_strategy forced_strategy(const sluice_runtime *rt, uint32_t u)
{
    const slc_unit *unit = &rt->job.units[u];
    if (slc_looks_up(unit)) return SLC_STRATEGIES;
    if (has_moved(&rt->units[u])) return rt->units[u].strategy;
    slc_strategy forced = rt->model.layers[rt->units[u].params[0]->layer]->forced;
    return forced == SLC_STRATEGIES || unit->role == SLC_UNIT_WHOLE ? forced
                                                                    : slc_unit_strategy(&rt->job, unit, forced);
}

/* Says on which lane updates run. A plan that will be followed by one from measured times has updates on both lanes, so
 * that both are measured. */
static slc_updates updates_choice(const sluice_runtime *rt, const slc_plan_request *request)
{
    if (!rt->optimizer.concurrent) return SLC_UPDATES_COMMUNICATION;
    if (request->kept) return SLC_UPDATES_AUTO;
    if (rt->planning.updates != SLC_UPDATES_AUTO || request->times) return rt->planning.updates;
    return rt->planning.replan_due ? SLC_UPDATES_BOTH : SLC_UPDATES_COMMUNICATION;
}

sluice_status slc_engine_add_choices(const sluice_runtime *rt, slc_plan_request *request)
{
    uint32_t units = rt->job.unit_count, layers = rt->job.layer_count;
    const uint8_t *recomputes = request->recompute;
    slc_strategy *forced = malloc((units + 1) * sizeof *forced);
    uint8_t *recompute = calloc((size_t)layers + 1, sizeof *recompute);
    request->forced = forced;
    request->recompute = recompute;
    if (!forced || !recompute) return slc_error(SLUICE_ERR_MEMORY, "plan");
    for (uint32_t u = 0; u < units; u++) forced[u] = forced_strategy(rt, u);
    for (uint32_t l = 0; l < layers; l++)
        recompute[l] = recomputes ? recomputes[l] : recompute_choice(rt, rt->model.layers[l]);
    if (request->updates == SLC_UPDATES_AUTO) request->updates = updates_choice(rt, request);
    request->cancel = &rt->planning.cancel;
    return SLUICE_OK;
}

void slc_engine_free_choices(slc_plan_request *request)
{
    free((void *)request->forced);
    free((void *)request->recompute);
    request->forced = NULL;
    request->recompute = NULL;
}

sluice_status slc_engine_gather_numbers(sluice_runtime *rt, uint64_t mine, uint64_t **all)
{
    *all = calloc((size_t)rt->size, sizeof **all);
    if (!*all) return slc_runtime_fail(rt, slc_error(SLUICE_ERR_MEMORY, "no memory for %d ranks", rt->size));
    return sluice_world_all_gather(rt->world, &mine, sizeof mine, *all);
}

sluice_status slc_engine_find_other(sluice_runtime *rt, uint64_t mine, int *other)
{
    uint64_t *all;
    sluice_status status = slc_engine_gather_numbers(rt, mine, &all);
    *other = 0;
    for (int r = 1; !status && !*other && r < rt->size; r++)
        if (all[r] != all[0]) *other = r;
    free(all);
    return status;
}

sluice_status slc_engine_least_budget(sluice_runtime *rt, uint64_t *budget_bytes)
{
    uint64_t *all;
    sluice_status status = slc_engine_gather_numbers(rt, *budget_bytes, &all);
    for (int r = 0; !status && r < rt->size; r++)
        if (all[r] && (!*budget_bytes || all[r] < *budget_bytes)) *budget_bytes = all[r];
    free(all);
    return status;
}

bool slc_engine_wants_times(const sluice_runtime *rt, const char *schedule)
{
    const slc_planner *planner = &rt->planning.planner;
    return planner->wants_times && planner->wants_times(planner->context, schedule);
}
