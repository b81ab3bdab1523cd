/* A program of layers that have one parameter each, for tests that are about something else than its layers. */
#pragma once

#include <sluice/runtime.h>

enum { PLAIN_LAYERS_MAX = 64 };

typedef struct {
    sluice_runtime *rt;
    uint32_t count;
    uint64_t elements; /* of each parameter */
    sluice_layer *layer[PLAIN_LAYERS_MAX];
    sluice_param *param[PLAIN_LAYERS_MAX];
} plain_layers;

/* Adds `count` layers "l0", "l1", ... to the runtime, which the caller has made and commits. */
sluice_status plain_layers_add(plain_layers *p, sluice_runtime *rt, uint32_t count, uint64_t elements);

/* Writes first values, the same on every rank: noise of the layer and the element. */
sluice_status plain_layers_write(const plain_layers *p);

/* A test's own part of a slot: in a backward it adds to the gradient; in a forward both arrays are NULL. */
typedef void plain_slot(void *context, uint32_t layer, const float *value, float *gradient);

/* Does the work of such a slot: in a backward it adds to the gradient a hundredth of the value, and noise that depends
 * on `seed` and the element; in a forward it does nothing. */
void plain_layers_add_noise(const plain_layers *p, uint64_t seed, const float *value, float *gradient);

/* Runs a micro-batch: the forwards and the backwards of the layers that the step has, up to the first error. `slot`
 * NULL adds 1 to each element of a gradient. */
sluice_status plain_layers_run(const plain_layers *p, plain_slot *slot, void *context);

/* Runs a step of one micro-batch. `report` may be NULL. */
sluice_status plain_layers_step(const plain_layers *p, const sluice_step_options *options, plain_slot *slot,
                                void *context, sluice_step_report *report);
