/* A step that leaves layers out goes through its whole plan all the same: their slots and operations keep their places
 * and claims, and do nothing. What a step leaves out is known when it begins, on every rank alike, so that nobody asks.
 * tests/engine/left_out_test.c covers this file. */
#include "lib/engine/step/left_out.h"

#include "lib/base/status.h"

#include <stdlib.h>
#include <string.h>

sluice_status slc_left_out_create(sluice_runtime *rt)
{
    for (int i = 0; i < 2; i++) {
        slc_step_state *step = &rt->steps[i];
        step->left_out = calloc(rt->model.layer_count, sizeof *step->left_out);
        step->updates = calloc(rt->model.param_count, sizeof *step->updates);
        if (!step->left_out || !step->updates)
            return slc_error(SLUICE_ERR_MEMORY, "updates of %u parameters", rt->model.param_count);
    }
    rt->drawn.keeps = calloc(rt->model.layer_count, sizeof *rt->drawn.keeps);
    return rt->drawn.keeps ? SLUICE_OK
                           : slc_error(SLUICE_ERR_MEMORY, "probabilities of %u layers", rt->model.layer_count);
}

void slc_left_out_destroy(sluice_runtime *rt)
{
    for (int i = 0; i < 2; i++) {
        free(rt->steps[i].left_out);
        free(rt->steps[i].updates);
    }
    free(rt->drawn.keeps);
}

/* `list`: the option that names the layer, at `place`. */
static sluice_status check_layer(const sluice_runtime *rt, const sluice_layer *layer, const char *list, uint64_t place)
{
    if (!layer || layer->rt != rt)
        return slc_error(SLUICE_ERR_ARGUMENT, "step_begin: %s[%llu] is no layer of this runtime", list,
                         (unsigned long long)place);
    if (layer->index && layer->index + 1 < rt->model.layer_count) return SLUICE_OK;
    return slc_error(SLUICE_ERR_ARGUMENT,
                     "step_begin: %s: layer \"%s\" is the %s one, which every step runs; leave out layers "
                     "between the first and the last",
                     list, layer->name, layer->index ? "last" : "first");
}

/* A layer that looks rows up of a table that is not its own is found by the parameter. */
static sluice_status check_look_ups(const sluice_runtime *rt, const sluice_layer *layer)
{
    for (uint32_t p = 0; p < rt->model.param_count; p++) {
        const sluice_param *param = rt->model.params[p];
        if (param->row_elements && param->layer == layer->index)
            return slc_error(SLUICE_ERR_UNSUPPORTED,
                             "step_begin: layers_left_out: layer \"%s\" looks up rows of parameter \"%s\", so every "
                             "step runs it; add that parameter without row_elements",
                             layer->name, param->name);
    }
    return SLUICE_OK;
}

/* A step that makes replicas equal cannot leave out a layer whose replicas differ. */
static sluice_status check_moved(const sluice_runtime *rt, const sluice_layer *layer)
{
    for (uint32_t p = 0; p < rt->model.param_count; p++) {
        const sluice_param *param = rt->model.params[p];
        if (param->moved && param->layer == layer->index && !param->tied)
            return slc_error(SLUICE_ERR_ARGUMENT,
                             "step_begin: exchange: layer \"%s\" is left out, but ranks hold different weights of it "
                             "since a local step of optimizer %s; keep it in this step",
                             layer->name, rt->optimizer.name);
    }
    return SLUICE_OK;
}

static uint64_t count_left_out(const sluice_step_options *options)
{
    return options->layers_left_out ? options->layer_left_out_count : 0;
}

static uint64_t count_drawn(const sluice_step_options *options)
{
    return options->layers_drawn ? options->layer_drawn_count : 0;
}

static sluice_status check_drawn(const sluice_runtime *rt, const sluice_step_options *options)
{
    sluice_status status = SLUICE_OK;
    if (count_drawn(options) && !options->layer_probabilities)
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "step_begin: layers_drawn without layer_probabilities; give one for each");
    for (uint64_t i = 0; !status && i < count_drawn(options); i++) {
        const double p = options->layer_probabilities[i];
        if (!(p > 0 && p <= 1))
            status = slc_error(SLUICE_ERR_ARGUMENT,
                               "step_begin: layer_probabilities[%llu] is %g; it must be above 0 and at most 1",
                               (unsigned long long)i, p);
        const sluice_layer *layer = options->layers_drawn[i];
        const bool of_others = !layer || layer->rt != rt;
        if (!status && (p < 1 || of_others)) status = check_layer(rt, layer, "layers_drawn", i);
    }
    return status;
}

sluice_status slc_left_out_check(const sluice_runtime *rt, const sluice_step_options *options)
{
    sluice_status status = check_drawn(rt, options);
    if (status || !count_left_out(options)) return status;
    if (slc_is_stage(&rt->stage))
        return slc_error(SLUICE_ERR_UNSUPPORTED,
                         "step_begin: layers_left_out: in a pipeline every step runs all layers, because its stages "
                         "exchange what each of them makes; leave it NULL");
    if (rt->compression.fuses)
        return slc_error(
            SLUICE_ERR_UNSUPPORTED,
            "step_begin: layers_left_out: optimizer %s with onebit.compat exchanges all parameters as one, "
            "so that none can be left out; switch compat off, or leave layers_left_out NULL",
            rt->optimizer.name);
    for (uint64_t i = 0; !status && i < options->layer_left_out_count; i++) {
        status = check_layer(rt, options->layers_left_out[i], "layers_left_out", i);
        if (!status) status = check_look_ups(rt, options->layers_left_out[i]);
        if (!status && options->exchange) status = check_moved(rt, options->layers_left_out[i]);
    }
    return status;
}

void slc_left_out_take(sluice_runtime *rt, slc_step_state *step, const sluice_step_options *options)
{
    memset(step->left_out, 0, rt->model.layer_count * sizeof *step->left_out);
    for (uint32_t l = 0; l < rt->model.layer_count; l++) rt->drawn.keeps[l] = 1;
    rt->drawn.any = count_drawn(options) > 0;
    for (uint64_t i = 0; i < count_drawn(options); i++)
        if (options->layer_probabilities[i] < 1)
            rt->drawn.keeps[options->layers_drawn[i]->index] = options->layer_probabilities[i];
    step->leaves_out = count_left_out(options) > 0;
    for (uint64_t i = 0; step->leaves_out && i < options->layer_left_out_count; i++)
        step->left_out[options->layers_left_out[i]->index] = true;
    for (uint32_t p = 0; p < rt->model.param_count; p++) step->updates[p] = step->step - rt->model.params[p]->missed;
}

void slc_left_out_count(sluice_runtime *rt, const slc_step_state *step)
{
    for (uint32_t p = 0; step->leaves_out && p < rt->model.param_count; p++)
        rt->model.params[p]->missed += slc_left_out_param(step, rt->model.params[p]);
}

bool slc_left_out_unit(const sluice_runtime *rt, const slc_step_state *step, uint32_t unit)
{
    const slc_unit_state *state = &rt->units[unit];
    bool all = step->leaves_out && state->param_count;
    for (uint32_t p = 0; all && p < state->param_count; p++) all = slc_left_out_param(step, state->params[p]);
    return all;
}

bool slc_left_out_item(const sluice_runtime *rt, const slc_step_state *step, const slc_item *item)
{
    if (slc_is_left_out(item, step->micro_batches, rt->job.micro_batches)) return true;
    if (!step->leaves_out) return false;
    if (item->kind == SLC_ITEM_SLOT) return step->left_out[slc_slot_layer(&rt->job, item->slot)];
    return item->unit != SLC_NONE && slc_left_out_unit(rt, step, item->unit);
}
