/* Plans a recipe whose sequences grow, from a profile of its longest sequences and, if there are any, profiles of
 * shorter ones. The times of slots at every length follow from these profiles (lib/plan/measured/fit_extents.h). */
#pragma once

#include "bench/plan/words/phases_table.h"
#include "bench/train/options/training_options.h"
#include "lib/plan/measured/fit_extents.h"
#include "lib/plan/request.h"

typedef struct {
    uint32_t longest;          /* tokens of a sequence; 0: lengths do not change */
    slc_plans_by_length plans; /* of the lengths that have plans of their own, as `sluice train` has them */
    slc_profile *shorter[SLC_EXTENTS_MOST];
    slc_extent_sample samples[SLC_EXTENTS_MOST]; /* sample_count of them; that of the longest is made last */
    uint32_t sample_count;
} slc_plan_lengths;

/* Reads the lengths of a recipe that has passed the other checks, and profiles at shorter ones, as
 * "64=a.json,128=b.json"; NULL: there are none. budget: as an option gives it, NULL: none. The caller calls
 * slc_plan_lengths_fini, after an error too. Errors: ARGUMENT, UNSUPPORTED, those of slc_profile_read. */
sluice_status slc_plan_lengths_read(slc_training_options *recipe, const char *budget, const char *shorter,
                                    slc_plan_lengths *out);
void slc_plan_lengths_fini(slc_plan_lengths *lengths);

/* Plans the lengths that have plans of their own, as `request` did for `whole`, but within `budget_bytes`. The bytes of
 * activations are in proportion to the length. Nothing happens if lengths do not change. Errors: those of planning;
 * ARGUMENT: a profile of a shorter length has other layers. */
sluice_status slc_plan_lengths_plan(slc_plan_lengths *lengths, slc_phase_plan whole, const slc_plan_request *request,
                                    uint64_t budget_bytes);

/* A function of a slc_whole_run, whose context is a slc_plan_lengths. */
void slc_plan_lengths_set_times(void *context, const slc_phase_plan *under, const slc_recipe_step *size,
                                slc_times *times);

/* Writes a line that says where the times of other lengths come from; "" where lengths do not change. */
void slc_plan_lengths_words(const slc_plan_lengths *lengths, char *text, size_t bytes);
