/* The learning rates that the options ask for. */
#pragma once

#include "bench/train/options/training_options.h"
#include "lib/recipe/rate.h"

typedef struct {
    slc_recipe_rate rate; /* with its defaults in place */
    bool tokens;          /* its times are tokens (--lr-over), else steps */
    double stride;        /* of the largest step on the clock: 1, or the tokens of all ranks */
} slc_lr_schedule;

/* Makes the schedule that the options ask for. tokens_per_step: of all ranks; 0: not known yet, then a schedule over
 * tokens is only checked as far as it can be. Errors: ARGUMENT for times that do not fit together, for options that the
 * schedule does not have. */
sluice_status slc_lr_schedule_make(const slc_training_options *options, uint64_t tokens_per_step, slc_lr_schedule *out);

/* Refuses a schedule whose rate is 0 already before the last step, because the steps from there on would change
 * nothing. `last` is where the clock stands before the last step. Errors: ARGUMENT. */
sluice_status slc_lr_schedule_check_last(const slc_lr_schedule *schedule, double last);

/* Returns the step or token at which the schedule ends, which is the last step if no option says it; 0: it has no
 * end. */
uint64_t slc_lr_schedule_horizon(const slc_training_options *options);

/* Sets the constant rate, with no warm-up, for a run that only measures, in fewer steps than the schedule has. */
void slc_lr_schedule_drop(slc_training_options *options);

/* Writes a line such as "0.001 after a warm-up over 10 steps, then cosine to 0.0001 at step 100". */
void slc_lr_schedule_words(const slc_lr_schedule *schedule, char *text, size_t bytes);
