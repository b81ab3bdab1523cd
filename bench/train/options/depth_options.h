/* Progressive layer dropping, from the options. */
#pragma once

#include "bench/train/options/training_options.h"
#include "lib/recipe/depth.h"

/* Refuses numbers that are out of range. Errors: ARGUMENT. */
sluice_status slc_depth_options_check_numbers(const slc_training_options *options);
/* Refuses numbers that are out of range, and options that do not fit the model. Errors: ARGUMENT, UNSUPPORTED. */
sluice_status slc_depth_options_check(const slc_training_options *options, const sluice_model_config *model);

/* Returns true if steps leave layers out. */
bool slc_depth_options_drop_layers(const slc_training_options *options);
slc_recipe_depth slc_depth_options_recipe(const slc_training_options *options);

/* Has all steps run all layers, as a run that only measures does. */
void slc_depth_options_drop(slc_training_options *options);

/* Writes words such as ", of all 12 layers at first and of 9.25 in the mean later"; "" where no layer is left out. */
void slc_depth_options_words(const slc_training_options *options, uint32_t layers, char *text, size_t bytes);
