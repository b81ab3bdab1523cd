/* Warns of options and losses that the user may not have meant. Warnings change nothing. Rank 0 or the launcher
 * warns. */
#pragma once

#include "bench/train/options/options.h"
#include "bench/train/result.h"

/* Warns, before ranks are started on this machine, of many more threads than cores. */
void slc_training_doubt_ranks(const slc_training_options *options);

/* Warns, before the first step, of a learning rate at which the optimizer cannot settle. */
void slc_training_doubt_rate(const slc_training_options *options);

/* The losses so far. */
typedef struct {
    uint64_t finite; /* how many */
    double smoothed; /* before the latest step */
    bool warned;
} slc_training_loss_watch;

/* Warns of a loss that leaves those before it far behind. Called after each step; returns true for the first one whose
 * loss does. */
bool slc_training_loss_jumps(slc_training_loss_watch *watch, const slc_training_step *step);
