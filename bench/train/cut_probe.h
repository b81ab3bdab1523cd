/* Measures times for the cuts of a pipeline, and for the prediction of its steps. A second runtime, which is like the
 * run's but cut by sizes, makes one step. The run's own runtime is then told what each layer, the updates and messages
 * took. This costs about a step, and changes no bit of the training. */
#pragma once

#include "bench/train/data/data.h"

#include <sluice/model.h>
#include <sluice/plan.h>

typedef struct {
    sluice_world *world;
    const slc_training_options *options;
    const sluice_model_config *model;
    const sluice_model_options *model_options;
    slc_training_data *data;
} slc_cut_probe;

/* The seconds that a micro-batch takes in each layer, on the slowest rank that holds it. */
typedef struct {
    double *forward_s, *backward_s; /* [layer_count] in one allocation, which forward_s begins */
    uint32_t layer_count;           /* 0: nothing was measured */
    sluice_stage_times besides;
} slc_cut_times;

/* True if there is a pipeline, and the run is so long that one step more pays. */
bool slc_cut_probe_pays(const slc_training_options *options);

/* Measures the times on held-out data and with parameters of 0. Collective; the same on every rank. Nothing is measured
 * if the step that measures does not fit the budget: it holds as many micro-batches as there are stages, at least
 * three, which can be more than the run's. The caller frees the times with slc_cut_times_fini, after an error too.
 * Errors: those of making a runtime and of a step. */
sluice_status slc_cut_probe_measure(const slc_cut_probe *probe, slc_cut_times *out);
/* Tells the times to a runtime with the same layers, before commit. Does nothing if nothing was measured. */
sluice_status slc_cut_times_tell(const slc_cut_times *times, sluice_runtime *rt);
void slc_cut_times_fini(slc_cut_times *times);
