/* The layers that each step of a run leaves out. */
#pragma once

#include "bench/train/options/training_options.h"
#include "lib/recipe/depth.h"

typedef struct {
    bool on, compat;
    bool moves_apart; /* the optimizer makes local steps: a step that is to make replicas equal keeps all layers */
    slc_recipe_depth recipe;
    sluice_model *model;
    uint32_t layers;
    const sluice_layer **left_out; /* of the step that was taken last */
    uint64_t left_out_count;
    const sluice_layer **drawn; /* [layers], and the probability with which that step kept each */
    double *keeps;
} slc_training_depth;

/* *out keeps the model. Errors: MEMORY. */
sluice_status slc_training_depth_begin(const slc_training_options *options, sluice_model *model,
                                       slc_training_depth *out);
void slc_training_depth_end(slc_training_depth *depth);
/* Draws the layers of a step, from 0, between steps, and scales the branches of those that it keeps. `exchange`: the
 * step is to leave equal weights on all ranks. Errors: as sluice_model_scale_branches. */
sluice_status slc_training_depth_take(slc_training_depth *depth, uint64_t step, bool exchange);
