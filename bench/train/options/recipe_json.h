/* The tracks of a run as JSON. */
#pragma once

#include "bench/train/options/training_options.h"

#include <jansson.h>

/* Returns the options' tracks as a file for --recipe has them; NULL without memory. */
json_t *slc_training_recipe_json(const slc_training_options *options);
