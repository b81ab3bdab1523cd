/* The job that `sluice train` would make of its options, without its ranks and without its memory. */
#pragma once

#include "bench/estimate/pace.h"
#include "bench/train/options/options.h"
#include "lib/base/error_line.h"

typedef struct {
    const slc_training_options *training; /* checked */
    int ranks, ranks_a_host;
    slc_pace pace;
    sluice_model_config model;
    uint32_t length;               /* tokens a sequence; 0 for images */
    uint64_t data_bytes;           /* what the training data keep in memory */
    uint32_t length_step;          /* of their micro-batches; 0: all are of one length */
    char no_data[SLC_ERROR_BYTES]; /* why they are not counted; "": they are */
} slc_survey;

/* Finds the model, and opens the data once to learn how much memory they keep. If the user did not ask for the data and
 * they cannot be opened, they are not counted, and no_data says why. Errors: those of slc_training_model and of
 * slc_training_data_open (--data). */
sluice_status slc_survey_begin(slc_survey *survey);

/* The parts of a request that decide which layers are fused. */
typedef struct {
    const char *strategy, *schedule;
    uint64_t budget_bytes; /* 0: none, or a share of the least that dp works in */
    double budget_of_dp;
} slc_survey_plan;

/* Registers the model on a runtime of an imagined world. The caller destroys the profile. Errors: those of creating
 * runtime and model. */
sluice_status slc_survey_profile(const slc_survey *survey, const slc_survey_plan *plan, slc_profile **out);
