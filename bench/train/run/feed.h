/* The micro-batches that a rank takes of the training data, and the targets in those of all ranks: a step's loss is
 * divided by them, so they are counted before it begins. Micro-batches count from 0 in this run. */
#pragma once

#include "bench/train/data/data.h"
#include "bench/train/data/step_batches.h"
#include "bench/train/run/place.h"
#include "lib/recipe/step_size.h"

#include <sluice/model.h>

typedef struct {
    sluice_world *world;
    const slc_run_place *place;
    slc_training_data *data;
    sluice_model *model;
    slc_step_batches *step_batches; /* of a pipeline, which has all micro-batches of a step under way; NULL: none */
    uint64_t begun;                 /* sequences of all ranks before this run */
    uint64_t taken, next;           /* micro-batches that this rank has taken; those of the step that comes */
    uint64_t own_targets;           /* of this rank in the step that comes next */
    double targets_each;            /* of a micro-batch of the step that comes, or runs: the mean over all ranks' */
    double loss_divisor; /* the same; its mean over a group of lengths, so that the targets of all steps weigh alike */
} slc_run_feed;

/* Returns the sequences of all ranks, of earlier runs too, once this rank has taken so many micro-batches. */
uint64_t slc_run_feed_sequences(const slc_run_feed *feed, uint64_t micro_batches);

/* Sets the size of the step that comes next, and counts this rank's targets in it. */
void slc_run_feed_count(slc_run_feed *feed, const slc_recipe_step *size);
/* Takes the sum over all ranks of what slc_run_feed_count counted: it travels with the loss of the step before. */
void slc_run_feed_take_targets(slc_run_feed *feed, double of_all_ranks);
/* Collective. Counts and adds up the targets of a step, if the step before has not done it. Errors: those of a
 * reduction. */
sluice_status slc_run_feed_agree(slc_run_feed *feed, const slc_recipe_step *size);

/* Sets the number that the losses of the next step are divided by. Returns the factor that makes its loss the mean over
 * all targets. */
double slc_run_feed_set_divisor(slc_run_feed *feed);
/* Runs the micro-batches of the step that was counted, forward and backward, inside a step. Errors: those of taking
 * data and of the model. */
sluice_status slc_run_feed_step(slc_run_feed *feed);
