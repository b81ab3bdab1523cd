/* The addresses of parameters, gradients, activations and workspaces while they are valid.
 * tests/calls/engine_contract_test.c covers this file. */
#include "lib/base/log.h"
#include "lib/base/status.h"
#include "lib/engine/check/check.h"
#include "lib/engine/model/unit.h"
#include "lib/engine/runtime.h"

#include <stdatomic.h>
#include <stdio.h>

/* Returns true if the layer that runs uses the parameter. A fused unit holds parameters of other layers too. */
static bool in_use(const sluice_param *param)
{
    const sluice_layer *open = param->rt->at.layer;
    bool uses = open && open->index == param->layer;
    for (uint32_t i = 0; open && i < open->use_count; i++) uses |= open->uses[i] == param;
    return uses;
}

/* The unit in which the layer that runs has the parameter. If it is split, the layer that adds it has the unit of
 * rows. */
static const slc_unit_state *unit_of(const sluice_param *param)
{
    const sluice_runtime *rt = param->rt;
    const slc_stage_rows *far = &rt->stage.rows;
    if (far->param == param && far->looks_up && rt->at.layer && rt->at.layer->index == param->layer) return &far->table;
    bool rows = param->rows_unit != SLC_NONE && rt->at.layer && rt->at.layer->index == param->layer;
    const uint32_t unit = rows ? param->rows_unit : param->unit;
    return rt->units && unit != SLC_NONE ? &rt->units[unit] : NULL;
}

/* Returns the unit's element at which the parameter begins. A table of rows begins where its unit's buffer does. */
static uint64_t first_of(const sluice_param *param, const slc_unit_state *unit)
{
    return unit->look_up ? 0 : param->first;
}

/* Returns how many elements of the parameter the layer that runs has. A layer that looks rows up in a split parameter
 * has those of its table. */
static uint64_t count_of(const sluice_param *param, const slc_unit_state *unit)
{
    return unit->look_up ? param->most_rows * param->row_elements : param->count;
}

/* ---- Where there is no address ---- */

/* A program that does not look at the result crashes, so the error's line goes to the log too, once for each `told`. */
static void *no_address(bool *told)
{
    if (!*told) slc_log(SLC_LOG_ERROR, "%s", sluice_last_error());
    *told = true;
    return NULL;
}

static void *nothing_given(const char *call)
{
    static _Atomic bool told;
    slc_error(SLUICE_ERR_ARGUMENT, "%s: NULL was given; did what made it fail?", call);
    if (!atomic_exchange(&told, true)) slc_log(SLC_LOG_ERROR, "%s", sluice_last_error());
    return NULL;
}

/* Says what runs now, or why nothing does. */
static void describe_now(const sluice_runtime *rt, char *out, size_t size)
{
    const sluice_layer *open = rt->at.layer;
    if (open)
        snprintf(out, size, "the %s of layer \"%.100s\"",
                 rt->at.direction == SLUICE_FORWARD ? "forward (or recomputation)" : "backward", open->name);
    else
        snprintf(out, size, "%s",
                 !rt->committed         ? "before commit"
                 : rt->mode == SLC_IDLE ? "between steps"
                                        : "between two layers");
}

static void *not_valid(const sluice_runtime *rt, bool *told, const char *kind, const char *name, const char *when)
{
    char now[160];
    describe_now(rt, now, sizeof now);
    if (rt->failure.status)
        slc_error(SLUICE_ERR_ORDER, "%s \"%s\" has no address, for a call before this one failed: %s", kind, name,
                  rt->failure.line ? rt->failure.line : sluice_status_name(rt->failure.status));
    else
        slc_error(SLUICE_ERR_ORDER, "%s \"%s\": %s; this is %s", kind, name, when, now);
    return no_address(told);
}

static void *param_not_valid(sluice_param *param, const char *when)
{
    const sluice_layer *open = param->rt->at.layer;
    if (!open || in_use(param) || param->rt->failure.status)
        return not_valid(param->rt, &param->told, "parameter", param->name, when);
    slc_error(SLUICE_ERR_ORDER,
              "parameter \"%s\": layer \"%s\", which runs now, does not use it: add it to that layer, or call "
              "sluice_param_use before commit",
              param->name, open->name);
    return no_address(&param->told);
}

/* ---- Addresses ---- */

const void *sluice_param_value(sluice_param *param)
{
    if (!param) return nothing_given("param_value");
    const slc_unit_state *unit = unit_of(param);
    if (!unit || !unit->now || !in_use(param))
        return param_not_valid(param, in_use(param)
                                          ? "its value is not there in its layer's backward, as no_backward_value says"
                                          : "its value is valid only between begin and end of a layer that uses it");
    void *value = slc_element(unit->now, unit->dtype, first_of(param, unit));
    if (!param->rt->check) return value;
    return slc_check_lend(param, false, value, count_of(param, unit) * sluice_dtype_bytes(unit->dtype));
}

void *sluice_param_gradient_fresh(sluice_param *param, bool *fresh)
{
    if (!param || !fresh) return nothing_given("param_gradient_fresh");
    sluice_runtime *rt = param->rt;
    if (param->frozen) {
        slc_error(SLUICE_ERR_ORDER, "parameter \"%s\" is frozen: it has no gradient", param->name);
        return no_address(&param->told);
    }
    const slc_unit_state *unit = unit_of(param);
    if (!unit || !unit->gradient_now || !in_use(param))
        return not_valid(rt, &param->told, "parameter", param->name,
                         "its gradient is valid only between backward_begin and backward_end of a layer that uses it");
    *fresh = !unit->look_up && param->fresh; /* the rows of a table are zero */
    if (!unit->look_up) param->fresh = false;
    void *gradient = slc_element(unit->gradient_now, unit->gradient_dtype, first_of(param, unit));
    if (!rt->check) return gradient;
    return slc_check_lend(param, true, gradient, count_of(param, unit) * sluice_dtype_bytes(unit->gradient_dtype));
}

void *sluice_param_gradient(sluice_param *param)
{
    bool fresh = false;
    if (!param) return nothing_given("param_gradient");
    void *gradient = sluice_param_gradient_fresh(param, &fresh);
    if (!gradient || !fresh) return gradient;
    uint64_t bytes = param->count * sluice_dtype_bytes(param->rt->units[param->unit].gradient_dtype);
    if (slc_fill_zero(&param->rt->compute, gradient, bytes)) return no_address(&param->told);
    return gradient;
}

void *sluice_activation_data(sluice_activation *activation)
{
    if (!activation) return nothing_given("activation_data");
    if (activation->data) return activation->data;
    return not_valid(activation->rt, &activation->told, "activation", activation->name,
                     "it has an address after commit");
}

void *sluice_workspace_data(sluice_workspace *workspace)
{
    if (!workspace) return nothing_given("workspace_data");
    const sluice_runtime *rt = workspace->rt;
    if (rt->at.layer && rt->at.layer->index == workspace->layer && rt->at.direction == workspace->direction)
        return rt->regions[rt->at.slot].data + workspace->offset;
    return not_valid(rt, &workspace->told, "workspace", workspace->name,
                     workspace->direction == SLUICE_FORWARD
                         ? "it is valid only in the forward (or recomputation) of its layer"
                         : "it is valid only in the backward of its layer");
}
