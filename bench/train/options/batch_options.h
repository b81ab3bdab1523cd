/* Micro-batches that grow, and the rate that follows the size of a step, from the options. */
#pragma once

#include "bench/train/options/training_options.h"
#include "lib/recipe/batch.h"

/* ARGUMENT for options that do not fit together. */
sluice_status slc_batch_options_check(const slc_training_options *options);

slc_recipe_batch slc_batch_options_growth(const slc_training_options *options);
/* Returns true if some steps have fewer micro-batches than --micro-batches. */
bool slc_batch_options_grow(const slc_training_options *options);

/* Returns what --lr is multiplied by in a step of so many sequences of all ranks. */
double slc_batch_options_rate_factor(const slc_training_options *options, uint64_t sequences);

/* Gives all steps all micro-batches, and --lr, as a run that only measures has them. */
void slc_batch_options_drop(slc_training_options *options);

/* Writes words such as ", times sequences / 256"; "" where the rate follows no batch. */
void slc_batch_options_rule_words(const slc_training_options *options, char *text, size_t bytes);
/* Writes words such as ", growing from 1 to 8 micro-batches over 100 steps"; "" where nothing grows. */
void slc_batch_options_words(const slc_training_options *options, char *text, size_t bytes);
