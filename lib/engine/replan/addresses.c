/* Where things are while they are valid. */
#include "lib/engine/runtime.h"

#include "lib/base/status.h"

sluice_dtype sluice_param_dtype(const sluice_param *param)
{
    return param->dtype;
}

/* As the job will have it: asked for before commit too. */
sluice_dtype sluice_param_gradient_dtype(const sluice_param *param)
{
    const sluice_config *config = &param->rt->config;
    const slc_job job = {.micro_batches = config->micro_batches,
                         .each = config->accumulate == SLUICE_ACCUMULATE_EACH,
                         .wire = config->wire};
    const slc_unit unit = {.dtype = param->dtype};
    return slc_gradient_dtype(&job, &unit);
}

/* Is the layer that runs one that uses it? A fused unit holds parameters of other layers too. */
static bool in_use(const sluice_param *param)
{
    const sluice_layer *open = param->rt->open_layer;
    bool uses = open && open->index == param->layer;
    for (uint32_t i = 0; open && i < open->use_count; i++) uses |= open->uses[i] == param;
    return uses;
}

/* The unit that the layer that runs has of it: where it is split, the layer that adds it has a table of rows. */
static const slc_unit_state *unit_of(const sluice_param *param)
{
    const sluice_runtime *rt = param->rt;
    bool rows = param->rows_unit != SLC_NONE && rt->open_layer && rt->open_layer->index == param->layer;
    return rt->units ? &rt->units[rows ? param->rows_unit : param->unit] : NULL;
}

/* A table begins where its unit's buffer does. */
static uint64_t first_of(const sluice_param *param, const slc_unit_state *unit)
{
    return unit->look_up ? 0 : param->first;
}

const void *sluice_param_value(sluice_param *param)
{
    if (!param) {
        slc_error(SLUICE_ERR_ARGUMENT, "param_value: no parameter given");
        return NULL;
    }
    const slc_unit_state *unit = unit_of(param);
    if (!unit || !unit->now || !in_use(param)) {
        slc_error(SLUICE_ERR_ORDER,
                  "parameter \"%s\": its value is valid only between begin and end of a layer that uses it",
                  param->name);
        return NULL;
    }
    return slc_element(unit->now, unit->dtype, first_of(param, unit));
}

void *sluice_param_gradient_fresh(sluice_param *param, bool *fresh)
{
    if (!param || !fresh) {
        slc_error(SLUICE_ERR_ARGUMENT, "param_gradient_fresh: a parameter and a result are needed");
        return NULL;
    }
    if (param->frozen) {
        slc_error(SLUICE_ERR_ORDER, "parameter \"%s\" is frozen: it has no gradient", param->name);
        return NULL;
    }
    const slc_unit_state *unit = unit_of(param);
    if (!unit || !unit->gradient_now || !in_use(param)) {
        slc_error(
            SLUICE_ERR_ORDER,
            "parameter \"%s\": its gradient is valid only between backward_begin and backward_end of a layer that "
            "uses it",
            param->name);
        return NULL;
    }
    *fresh = !unit->look_up && param->fresh; /* the rows of a table are zero */
    if (!unit->look_up) param->fresh = false;
    return slc_element(unit->gradient_now, unit->gradient_dtype, first_of(param, unit));
}

void *sluice_param_gradient(sluice_param *param)
{
    bool fresh = false;
    void *gradient = sluice_param_gradient_fresh(param, &fresh);
    if (!gradient || !fresh) return gradient;
    uint64_t bytes = param->count * sluice_dtype_bytes(param->rt->units[param->unit].gradient_dtype);
    if (slc_fill_zero(&param->rt->compute, gradient, bytes)) return NULL;
    return gradient;
}

void *sluice_activation_data(sluice_activation *activation)
{
    return activation ? activation->data : NULL;
}

void *sluice_workspace_data(sluice_workspace *workspace)
{
    if (!workspace) {
        slc_error(SLUICE_ERR_ARGUMENT, "workspace_data: no workspace given");
        return NULL;
    }
    const sluice_runtime *rt = workspace->rt;
    const sluice_layer *layer = rt->layers[workspace->layer];
    if (rt->open_layer != layer || rt->open_direction != workspace->direction) {
        bool forward = workspace->direction == SLUICE_FORWARD;
        slc_error(SLUICE_ERR_ORDER, "workspace \"%s\" is valid only in the %s of its layer", workspace->name,
                  forward ? "forward (or recomputation)" : "backward");
        return NULL;
    }
    return rt->regions[rt->open_slot].data + workspace->offset;
}

const char *sluice_param_name(const sluice_param *param)
{
    return param->name;
}

uint64_t sluice_param_count(const sluice_param *param)
{
    return param->count;
}

uint32_t sluice_runtime_param_count(const sluice_runtime *rt)
{
    return rt->param_count;
}

sluice_param *sluice_runtime_param(const sluice_runtime *rt, uint32_t index)
{
    return index < rt->param_count ? rt->params[index] : NULL;
}

sluice_world *sluice_runtime_world(const sluice_runtime *rt)
{
    return rt->world;
}

void *sluice_runtime_stream(const sluice_runtime *rt)
{
    return (void *)&rt->compute;
}

bool sluice_layer_recomputes(const sluice_layer *layer)
{
    return layer && layer->rt->committed && layer->rt->plan->recompute[layer->index];
}

const char *sluice_layer_strategy_name(const sluice_layer *layer)
{
    const sluice_runtime *rt = layer->rt;
    uint32_t first = SLC_NONE;
    for (uint32_t p = 0; rt->committed && p < rt->param_count; p++)
        if (rt->params[p]->layer == layer->index && rt->params[p]->unit < first) first = rt->params[p]->unit;
    return first == SLC_NONE ? "none" : slc_strategy_name(rt->units[first].strategy);
}
