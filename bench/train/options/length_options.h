/* Lengths that grow in the course of a run, from the options. */
#pragma once

#include "bench/train/options/training_options.h"
#include "lib/recipe/step_size.h"

/* Reads --curriculum. *out is {0} without one. Errors: ARGUMENT names what is wrong with it. */
sluice_status slc_length_options_read(const slc_training_options *options, slc_recipe_length *out);

/* Checks the curriculum together with the model and the other options. `context` is the tokens of a whole sequence, 0
 * for images. Errors: ARGUMENT, UNSUPPORTED. */
sluice_status slc_length_options_check(const slc_training_options *options, uint32_t context);

/* Returns the sizes of the steps of a run whose options have passed the checks; whole: rows of a whole sequence. */
slc_recipe_sizes slc_length_options_sizes(const slc_training_options *options, uint32_t whole);

/* Returns true if a run has steps of several lengths. */
bool slc_length_options_vary(const slc_training_options *options);

/* Lets a model take micro-batches of the run's lengths, where they grow. With a budget it gets shapes too, a half, a
 * quarter and an eighth of its length, so that short steps have plans that use the memory that their activations leave;
 * `shapes` keeps their lengths as long as the model's options are used. */
void slc_length_options_set_model(const slc_training_options *options, uint32_t shapes[SLUICE_SHAPES_MOST],
                                  sluice_model_options *model);

/* Gives all steps whole sequences, as a run that only measures has them. */
void slc_length_options_drop(slc_training_options *options);

/* Writes words such as ", lengths growing from 64 to 1024 over 15000 steps"; "" without a curriculum. */
void slc_length_options_words(const slc_training_options *options, char *text, size_t bytes);

/* Writes a line that warns of a compressed optimizer which freezes, at step `freeze`, while lengths still grow; "" if
 * there is nothing to warn of. freeze 0: not known. */
void slc_length_options_doubt(const slc_training_options *options, uint64_t freeze, char *text, size_t bytes);
