/* The size of each step, which follows from the tracks of batch and of length together. */
#pragma once

#include "lib/recipe/batch.h"
#include "lib/recipe/length.h"

#include <stdbool.h>

/* The two tracks, and the length of a whole sequence. */
typedef struct {
    slc_recipe_batch batch;
    slc_recipe_length length;
    bool folds; /* a short step has as many parts of each whole sequence as it holds, so that tokens stay; else one */
    uint32_t whole; /* tokens (rows) of a whole sequence; > 0 */
} slc_recipe_sizes;

typedef struct {
    uint64_t micro_batches;
    uint32_t length; /* tokens of a sequence; 0: whole ones */
    uint32_t pieces; /* sequences that a whole one becomes */
    uint64_t tokens; /* of the step, for each whole sequence of a micro-batch */
} slc_recipe_step;

/* Returns the size of a step, from 0: with length f, floor(whole / f) pieces where steps fold, and one where they do
 * not. */
slc_recipe_step slc_recipe_step_at(const slc_recipe_sizes *sizes, uint64_t step);

/* Returns the first step after `step` that has another size; UINT64_MAX: there is none. */
uint64_t slc_recipe_size_changes(const slc_recipe_sizes *sizes, uint64_t step);

/* Returns the sum of the tokens of the steps from `from` to before `to`. Takes time proportional to the changes in
 * between. */
uint64_t slc_recipe_tokens(const slc_recipe_sizes *sizes, uint64_t from, uint64_t to);
