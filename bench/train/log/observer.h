/* Figures that papers on training look at, every N steps (--observe N). A block has the means over tokens of |y| / |x|
 * and of the cosine between its input x and its output y, in the last micro-batch of each rank; a layer has the norm
 * and the largest element of Adam's second moment. Rank 0 writes them to observed.csv in the folder of --log, and draws
 * them at the end. One thread. */
#pragma once

#include "bench/train/options/options.h"

#include <sluice/model.h>
#include <stdio.h>

typedef struct slc_training_observer slc_training_observer;

typedef struct {
    sluice_world *world;
    const slc_training_options *options;
    sluice_runtime *rt;
    sluice_model *model;
    uint64_t steps_before; /* of the run that this one goes on with: its rows stay */
} slc_training_observed;

/* *out is NULL if the options do not ask for it. Errors: PATH, IO, MEMORY, on rank 0; those of all ranks are alike. */
sluice_status slc_training_observer_open(const slc_training_observed *of, slc_training_observer **out);
/* Lets the model note its figures if step number `step`, from 1, is to be observed. Call it before that step. */
sluice_status slc_training_observer_begin(slc_training_observer *observer, uint64_t step);
/* Writes the figures of step number `step` if it was observed. Call it after that step, before the next one begins. It
 * is collective for an observed step. Errors: those of sluice_param_state_extent and of the world. A row that cannot be
 * written is told once, and the run goes on. */
sluice_status slc_training_observer_end(slc_training_observer *observer, uint64_t step);
/* Writes observed.gp and has observed.svg and .png drawn, if anything was observed. A line on `out` says so. Errors:
 * PATH, IO, SYSTEM. On ranks but 0 it does nothing. */
sluice_status slc_training_observer_draw(slc_training_observer *observer, FILE *out);
void slc_training_observer_close(slc_training_observer *observer); /* NULL is allowed */
