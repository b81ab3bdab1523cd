/* A recipe: what changes in the course of a run, as tracks in a JSON file (docs/formats.md). Each value is that of an
 * option, which the command line may say instead. */
#pragma once

#include "bench/cli/options/option.h"
#include "bench/train/options/training_options.h"

enum { SLC_TRAINING_RECIPE_VERSION = 1 };

/* A value of a recipe: its path inside the file, as "rate.peak", and the option that says the same. */
typedef struct {
    const char *path, *option;
} slc_training_track;

/* Returns the value number `i`, in the order in which values are written; NULL after the last. */
const slc_training_track *slc_training_track_at(size_t i);
/* Says whether an option is a value of a recipe. */
bool slc_training_is_track(const char *option);

/* Sets the options that the file has values for and nothing has set yet. Errors: PATH, IO, MEMORY; FORMAT (no JSON, no
 * object, a version that is not 1), ARGUMENT (a track that there is not, a value that it does not take): they name the
 * file and the path inside it. */
sluice_status slc_training_recipe_read(const char *path, const slc_option *rows, slc_training_options *options);
