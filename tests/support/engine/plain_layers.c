#include "tests/support/engine/plain_layers.h"

#include "tests/support/draw.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

sluice_status plain_layers_add(plain_layers *p, sluice_runtime *rt, uint32_t count, uint64_t elements)
{
    sluice_status status = SLUICE_OK;
    assert(count <= PLAIN_LAYERS_MAX);
    *p = (plain_layers){.rt = rt, .count = count, .elements = elements};
    for (uint32_t l = 0; !status && l < count; l++) {
        char name[16];
        snprintf(name, sizeof name, "l%u", l);
        status = sluice_layer_add(rt, name, &p->layer[l]);
        const sluice_param_desc desc = SLUICE_INIT(sluice_param_desc, .name = "w", .count = elements);
        if (!status) status = sluice_param_add(p->layer[l], &desc, &p->param[l]);
    }
    return status;
}

sluice_status plain_layers_write(const plain_layers *p)
{
    float *values = malloc(p->elements * sizeof *values);
    sluice_status status = values ? SLUICE_OK : SLUICE_ERR_MEMORY;
    for (uint32_t l = 0; !status && l < p->count; l++) {
        for (uint64_t i = 0; i < p->elements; i++) values[i] = noise(l, i);
        status = sluice_param_write(p->param[l], 0, p->elements, values);
    }
    free(values);
    return status;
}

void plain_layers_add_noise(const plain_layers *p, uint64_t seed, const float *value, float *gradient)
{
    for (uint64_t i = 0; gradient && i < p->elements; i++) gradient[i] += 0.01f * value[i] + noise(seed, i);
}

static void add_gradient(const plain_layers *p, uint32_t layer, plain_slot *slot, void *context)
{
    float *gradient = sluice_param_gradient(p->param[layer]);
    if (!gradient) return;
    if (slot) slot(context, layer, sluice_param_value(p->param[layer]), gradient);
    for (uint64_t i = 0; !slot && i < p->elements; i++) gradient[i] += 1;
}

sluice_status plain_layers_run(const plain_layers *p, plain_slot *slot, void *context)
{
    sluice_status status = SLUICE_OK;
    for (uint32_t l = 0; !status && l < p->count; l++) {
        if (!sluice_layer_runs(p->layer[l])) continue;
        status = sluice_forward_begin(p->layer[l]);
        if (!status && slot) slot(context, l, NULL, NULL);
        if (!status) status = sluice_forward_end(p->layer[l]);
    }
    for (uint32_t l = p->count; !status && l-- > 0;) {
        if (!sluice_layer_runs(p->layer[l])) continue;
        status = sluice_backward_begin(p->layer[l]);
        if (!status) add_gradient(p, l, slot, context);
        if (!status) status = sluice_backward_end(p->layer[l]);
    }
    return status;
}

sluice_status plain_layers_step(const plain_layers *p, const sluice_step_options *options, plain_slot *slot,
                                void *context, sluice_step_report *report)
{
    sluice_status status = sluice_step_begin(p->rt, options);
    if (!status) status = plain_layers_run(p, slot, context);
    return status ? status : sluice_step_end(p->rt, report);
}
