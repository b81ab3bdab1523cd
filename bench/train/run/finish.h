/* The end of a run, after its last step: figures, weights, the evaluation of the end and other files. */
#pragma once

#include "bench/train/log/observer.h"
#include "bench/train/run/evaluation.h"
#include "bench/train/run/place.h"
#include "bench/train/stages.h"
#include "bench/train/watch.h"

typedef struct {
    sluice_world *world;
    const slc_training_options *options;
    const slc_training_watch *watch; /* NULL: none */
    const slc_run_place *place;
    sluice_runtime *rt;
    sluice_model *model;
    slc_training_data *data;
    slc_stage_notes *stages; /* NULL: there is no pipeline */
    slc_run_evaluation *evaluation;
    slc_training_observer *observer; /* NULL: nothing is observed */
} slc_run_ended;

/* Collective. Fills the result from its steps and from the runtime. A file that cannot be written is added to
 * result->outputs, so that the others are written all the same. Errors: those of the library but IO. */
sluice_status slc_run_finish(const slc_run_ended *run, slc_training_result *result);
