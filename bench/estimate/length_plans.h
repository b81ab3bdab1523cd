/* The plans that steps of each length run under, as `sluice train` makes them: with a budget, of its own for each shape
 * (bench/train/options/length_options.h). */
#pragma once

#include "bench/estimate/survey.h"
#include "bench/plan/words/phases_table.h"

typedef struct {
    const slc_survey *survey;
    slc_plans_by_length plans;
} slc_length_plans;

/* Plans within `budget_bytes` for the shapes that the survey's options ask for; with a budget of 0 there are no such
 * plans. The caller frees *out, after an error too. Errors: those of slc_survey_profile and of planning. */
sluice_status slc_length_plans_make(const slc_survey *survey, slc_phase_plan whole, uint64_t budget_bytes,
                                    double effort_s, slc_length_plans *out);
void slc_length_plans_free(slc_length_plans *plans);

/* A function of a slc_whole_run, whose context is a slc_length_plans. */
void slc_length_plans_set_times(void *context, const slc_phase_plan *under, const slc_recipe_step *size,
                                slc_times *times);
