/* The rates of a run: how large each step is, where the clock of the learning rate stands before it, and
 * the rate by the schedule, by the size of the step and by the group of a parameter. Steps count from 0. */
#pragma once

#include "bench/train/checkpoint/checkpoint.h"
#include "bench/train/options/lr_schedule.h"
#include "bench/train/run/place.h"
#include "lib/recipe/step_size.h"

#include <sluice/model.h>

typedef struct {
    const slc_training_options *options;
    const slc_run_place *place;
    slc_recipe_sizes sizes;      /* with the tokens of a whole sequence from slc_run_rates_set_model on */
    slc_training_position begun; /* where this run went on */
    uint64_t begun_tokens;       /* of all ranks, as the clock counts them */
    slc_lr_schedule schedule;
    double *group; /* --layer-decay: factors on the rate, by group; NULL: all are 1 */
    uint32_t group_count;
} slc_run_rates;

/* Both pointers are kept. slc_run_rates_fini frees what slc_run_rates_begin has made. */
void slc_run_rates_init(slc_run_rates *rates, const slc_training_options *options, const slc_run_place *place);
void slc_run_rates_fini(slc_run_rates *rates);

/* Called once the model is known: sets the tokens of a whole sequence. */
void slc_run_rates_set_model(slc_run_rates *rates, const sluice_model_config *model);

/* Returns the number of steps that --epochs asks for. `pass`: the share of the training data in a micro-batch of whole
 * sequences of each rank. */
uint64_t slc_run_rates_count_steps(const slc_run_rates *rates, double pass);

/* Makes the schedule of a run that goes on at `begun`; rank 0 warns of a warm-up that does not end. `windows`: the data
 * are windows of text, so that the clock goes on at the tokens that were trained on, whatever lengths they had; of
 * other data each sequence counts as a whole one. Errors: ARGUMENT (times that do not fit together; a rate that is 0
 * before the last step), MEMORY. */
sluice_status slc_run_rates_begin(slc_run_rates *rates, const sluice_model_config *model,
                                  const slc_training_position *begun, bool windows, uint64_t tokens_per_step);

/* Returns true if the run has steps with sequences of several lengths. */
bool slc_run_rates_vary(const slc_run_rates *rates);

/* Returns the learning rate of a step, before the factors of groups. */
double slc_run_rates_at(const slc_run_rates *rates, uint64_t step);
