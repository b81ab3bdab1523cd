/* Other units for the layers of a job that trains already. tests/engine/regroup_test.c covers this file. */
#include "lib/engine/replan/regroup.h"

#include "lib/base/integer.h"
#include "lib/base/status.h"
#include "lib/engine/runtime.h"

#include <stdlib.h>
#include <string.h>

/* Only a plan of the longest shape may choose units: with those of a shorter one, the longest might not fit the budget.
 */
bool slc_regroup_allowed(const sluice_runtime *rt, const slc_plan_request *request)
{
    return request->times && rt->planning.fuse_bytes == SLC_FUSE_AUTO && rt->planning.planner.fuse &&
           !rt->compression.on && !rt->shapes.now;
}

/* Writes for each layer the last one of the unit that begins with it. */
static void list_groups(const slc_unit *units, uint32_t count, uint32_t layers, uint32_t *last)
{
    for (uint32_t l = 0; l < layers; l++) last[l] = l;
    for (uint32_t u = 0; u < count; u++)
        if (units[u].fused) last[units[u].uses[0].layer] = units[u].uses[units[u].use_count - 1].layer;
}

/* Returns true if two units hold the same parameters. A unit of rows holds none, but looks them up in one. */
static bool is_same(const slc_unit_state *a, const slc_unit_state *b)
{
    return a->looked_up == b->looked_up && a->param_count == b->param_count &&
           (!a->param_count || !memcmp(a->params, b->params, a->param_count * sizeof *a->params));
}

static sluice_status find_same(const sluice_runtime *rt, slc_regrouping *out)
{
    out->same = calloc((size_t)rt->job.unit_count + 1, sizeof *out->same);
    if (!out->same) return slc_error(SLUICE_ERR_MEMORY, "units");
    for (uint32_t u = 0; u < rt->job.unit_count; u++) {
        out->same[u] = SLC_NONE;
        for (uint32_t b = 0; b < out->before.count && out->same[u] == SLC_NONE; b++)
            if (is_same(&rt->units[u], &out->before.states[b])) out->same[u] = b;
    }
    return SLUICE_OK;
}

/* Lists the pieces that move between units: each parameter, with what follows it up to the next multiple of a grain, at
 * which the next one begins. */
static sluice_status list_pieces(const sluice_runtime *rt, slc_regrouping *out)
{
    out->pieces = calloc((size_t)rt->model.param_count + 1, sizeof *out->pieces);
    if (!out->pieces) return slc_error(SLUICE_ERR_MEMORY, "units");
    for (uint32_t u = 0; u < rt->job.unit_count; u++)
        for (uint32_t p = 0; out->same[u] == SLC_NONE && p < rt->units[u].param_count; p++) {
            const sluice_param *param = rt->units[u].params[p];
            const slc_place_in_unit *before = &out->before.places[param->number];
            out->pieces[out->piece_count++] =
                (slc_unit_piece){u, before->unit, param->first, before->first, slc_round_up(param->count, SLC_GRAIN)};
        }
    return SLUICE_OK;
}

static sluice_status make_units(sluice_runtime *rt, const slc_plan_request *request, uint32_t *last,
                                slc_regrouping *out)
{
    const uint32_t layers = rt->model.layer_count;
    uint32_t *wanted = last + layers;
    for (uint32_t l = 0; l < layers; l++) wanted[l] = l;
    /* A rank that fails here ends the world, because the others wait for it. */
    sluice_status status = slc_runtime_fail(rt, slc_units_make(rt, wanted));
    if (!status) status = slc_engine_fuse_layers(rt, request, wanted);
    out->on = !status && memcmp(last, wanted, layers * sizeof *last) != 0;
    if (status || !out->on) return status;
    status = slc_units_make(rt, wanted);
    if (!status) status = slc_units_list_by_layer(rt);
    if (!status) status = find_same(rt, out);
    return slc_runtime_fail(rt, status ? status : list_pieces(rt, out));
}

sluice_status slc_regroup_begin(sluice_runtime *rt, const slc_plan_request *request, slc_regrouping *out)
{
    *out = (slc_regrouping){.job_before = rt->job};
    uint32_t *last = calloc(2 * (size_t)rt->model.layer_count, sizeof *last);
    sluice_status status = last ? slc_units_set_aside(rt, &out->before) : slc_error(SLUICE_ERR_MEMORY, "layers");
    if (status) {
        free(last);
        return slc_runtime_fail(rt, status);
    }
    /* The groups are made without a budget: planning finds out whether the budget allows them. */
    slc_plan_request asked = *request;
    asked.budget_bytes = 0;
    list_groups(out->before.units, out->before.count, rt->model.layer_count, last);
    status = make_units(rt, &asked, last, out);
    if (status || !out->on) slc_regroup_undo(rt, out);
    free(last);
    return status;
}

void slc_regroup_undo(sluice_runtime *rt, slc_regrouping *regrouping)
{
    slc_units_put_back(rt, &regrouping->before);
    free(regrouping->same);
    free(regrouping->pieces);
    *regrouping = (slc_regrouping){0};
}

void slc_regroup_keep(const sluice_runtime *rt, slc_regrouping *regrouping)
{
    slc_unit_set_fini(rt, &regrouping->before);
    free(regrouping->same);
    free(regrouping->pieces);
    *regrouping = (slc_regrouping){0};
}
