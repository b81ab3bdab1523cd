/* The evaluation of a run: the loss and the share of right answers on data that is not trained on. */
#pragma once

#include "bench/train/data/data.h"
#include "bench/train/run/place.h"

#include <sluice/model.h>
#include <stdbool.h>

typedef struct {
    sluice_world *world;
    const slc_training_options *options;
    const slc_run_place *place;
    slc_training_data *data;
    sluice_model *model;
    float *logits; /* of a micro-batch; NULL: the model does not answer with classes, or nothing is evaluated */
} slc_run_evaluation;

/* Makes room for answers; the fields before it are the caller's, and stay valid. slc_run_evaluation_fini frees the
 * room. Errors: MEMORY. */
sluice_status slc_run_evaluation_init(slc_run_evaluation *evaluation);
void slc_run_evaluation_fini(slc_run_evaluation *evaluation);

/* Returns true if an evaluation is due after a step, which counts from 0. The one after the last step is not counted.
 */
bool slc_run_evaluation_due(const slc_run_evaluation *evaluation, uint64_t step);

/* Collective, between steps. Computes the mean loss over the targets of held-out windows or images, of which replica r
 * takes every N-th micro-batch, and the share of right answers (NaN without classes). Errors: those of taking data and
 * of sluice_model_evaluate. */
sluice_status slc_run_evaluation_take(slc_run_evaluation *evaluation, double *mean, double *accuracy);
