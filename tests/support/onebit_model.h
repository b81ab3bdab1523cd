/* A small model of awkward sizes under a compressed optimizer, for tests that fork ranks. All functions run in a rank;
 * those that return an int return 0, or 1 after a line on standard error. */
#pragma once

#include "lib/device/device.h"
#include "tests/support/ranks.h"

#include <sluice/sluice.h>
#include <stdbool.h>

enum { LAYERS = 4, PARAMS_MAX = 12, COUNT_MAX = 1200, PADDED_MAX = 2048 };

typedef struct {
    uint64_t seed;
    const char *optimizer, *strategy, *schedule, *fuse; /* NULL: onebit_adam, onebit, serial, off */
    const char *device;                                 /* NULL: cpu */
    uint32_t onebit_layers; /* bit l: layer l is forced to be onebit; the others are `other`, if that is not NULL */
    const char *other;
    uint32_t micro_batches, bf16_layers;
    uint64_t block, budget, freeze_step;
    uint64_t var_freeze_step, var_update_scaler, local_step_scaler, local_step_clipper; /* 0: the default */
    double budget_of_dp, clip, freeze_change, beta2, scale;     /* scale: gradient_scale; 0: the default */
    bool messages, skip_nan, fp32_wire, adapts, compat, frozen; /* frozen: each layer holds a frozen parameter */
    bool leaves_out; /* steps that need not exchange leave out layers in between (model_leaves_out) */
} trial;

typedef struct {
    sluice_param *param;
    uint32_t layer;
    uint64_t count, dead_from, dead_end; /* elements whose gradient is 0 */
    bool no_decay;
} known;

typedef struct {
    const trial *t;
    int rank, size;
    sluice_world *world;
    sluice_runtime *rt;
    sluice_layer *layers[LAYERS];
    sluice_activation *activations[LAYERS];
    known params[PARAMS_MAX];
    uint32_t param_count;
    slc_pinned copies; /* of what lies in a GPU's memory; base NULL on the host */
    /* Creates the runtime; NULL: sluice_runtime_create. */
    sluice_status (*create)(sluice_world *world, const sluice_config *config, sluice_runtime **out);
    uint64_t calls;    /* steps that were computed */
    bool exchange;     /* sluice_step_options.exchange of the steps to come */
    uint32_t left_out; /* bit l: the steps to come leave layer l out, whatever trial.leaves_out says */
    uint64_t bad_call; /* the call in which rank bad_rank's gradient of bad_param is not finite; 0: none */
    int bad_rank;
    uint32_t bad_param;
    uint64_t huge_from; /* the call from which an element's gradient is almost the largest number; 0: never */
} model;

int model_world(const trial *t, int rank, int size, model *m);
sluice_config model_config(const trial *t);

/* Creates the runtime in m->world, registers, commits and writes the first values; model_end destroys the runtime. */
int model_build(model *m);
int model_build_with(model *m, const sluice_config *config);
int model_layers(model *m, uint64_t *random); /* registers layers and parameters, as part of model_build */
void model_end(model *m);
int model_leave(model *m); /* the end of a rank: model_end, and the world goes */

/* A rank adds this to an element's gradient in a micro-batch of call number `call`. */
float model_added(const model *m, uint32_t p, uint64_t i, uint64_t call, uint32_t batch, int rank, float value);

/* Returns true if call number `call` leaves the layer out, if it need not exchange. */
bool model_leaves_out(const trial *t, uint64_t call, uint32_t layer);

/* x as the type holds it. */
float model_rounded(sluice_dtype dtype, float x);

/* A step, and a step up to its end, which the caller calls. */
int model_step(model *m, sluice_step_report *report);
int model_compute(model *m);

bool model_is_onebit(const known *k);

/* 64 bits of the values that this rank holds, and of the optimizer's states if `states`. */
int model_hash(model *m, bool states, uint64_t *hash);

/* Fails unless all ranks hold the same values and states; *hash is theirs. */
int model_replicas_equal(model *m, uint64_t *hash);

/* Fails unless the peak of memory is what was planned, and within the budget. */
int model_peak_is_planned(model *m);

/* Layers that are not onebit may have any other strategy: weights_of must give the same hash whichever they have. */
int model_beside_any_strategy(int rank, int size, const trial *of,
                              int (*weights_of)(const trial *t, model *m, uint64_t *hash));
