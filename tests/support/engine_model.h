/* A model that a trial's seed draws: layers, parameters of awkward sizes, some frozen, tied or in bf16. Some tied
 * parameters are looked up by rows, drawn anew for each rank and micro-batch, in one gradient with their other use or
 * split from it. Next to each of the runtime's parameters is a plain array of what it must hold. */
#pragma once

#include "tests/support/trial.h"

#include <sluice/sluice.h>

enum { PARAMS_MAX = 16, LOOKED_UP_MAX = 24, GROUPS = 3 };

typedef struct {
    sluice_param *param;
    bool bf16, bf16_gradient;
    float *value, *gradient, *m, *v; /* value: the master; m, v: the optimizer's states */
    uint64_t count;
    uint32_t layer;
    uint32_t group;
    int tied_layer, last_layer; /* the second and the third use, or -1 */
    bool frozen, no_decay, no_backward_value;
    uint64_t row_elements, most_rows; /* row_elements 0: its layer reads all of it */
    int32_t rows[LOOKED_UP_MAX], places[LOOKED_UP_MAX];
    uint32_t looked_up; /* rows that this rank looks up in the micro-batch that runs */
    bool split;
} known_param;

typedef struct {
    const trial *t;
    int rank;
    sluice_runtime *rt;
    sluice_layer *layer[LAYERS_MAX];
    sluice_activation *activation[LAYERS_MAX], *remade[LAYERS_MAX]; /* remade: recomputable if the layer is */
    uint64_t remade_bytes[LAYERS_MAX];
    bool can_recompute[LAYERS_MAX];
    known_param params[PARAMS_MAX];
    uint32_t param_count;
    uint64_t chance, update_chance; /* of delays: others on every rank, for each thread; 0: no delays */
} engine_model;

/* Creates, in a rank, the runtime for w->t and w->rank, registers the model, commits, and writes the first values.
 * Returns 0, or 1 after a line on standard error. */
int engine_model_build(engine_model *w, sluice_world *world);
void engine_model_destroy(engine_model *w);

/* Writes values that the seed decides, to the runtime and to the plain array. A frozen parameter in bf16 has no master:
 * it holds what rounding leaves. */
int engine_model_write_noise(known_param *k, uint64_t seed);

/* The model's own optimizer, with one state, in operations that any compiler rounds alike. `context`: where chances of
 * delays begin, or NULL. */
sluice_status engine_model_update(const sluice_update *u, void *context);

/* Waits for up to a quarter of a millisecond, one time in three; never if *chance is 0. */
void engine_model_dawdle(uint64_t *chance);

/* x as bf16 holds it, and element i as compute sees it. */
float engine_model_rounded(float x);
float engine_model_seen(const known_param *k, uint64_t i);

/* True if the layer uses the parameter; the second function, if it looks up rows of it. */
bool engine_model_uses(const known_param *p, uint32_t layer);
bool engine_model_looks_up(const known_param *p, uint32_t layer);
