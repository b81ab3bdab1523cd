/* tests/command/recipe/recipe_plan_test.sh covers this file. */
#include "bench/plan/commands/plan_lengths.h"

#include "bench/train/options/length_options.h"
#include "lib/base/integer.h"
#include "lib/base/status.h"
#include "sched/planner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ACTIVATION_STEP = 64 }; /* bytes that activations are rounded up to */

/* ---- Reading ---- */

static sluice_status read_shorter(const char *item, slc_plan_lengths *l)
{
    char *end;
    const unsigned long length = strtoul(item, &end, 10);
    if (*end != '=' || !end[1] || *item < '0' || *item > '9')
        return slc_error(SLUICE_ERR_ARGUMENT, "--shorter: \"%s\" is no LENGTH=FILE, as 128=short.json", item);
    if (!length || length >= l->longest)
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "--shorter %s: give a length below %u, the recipe's longest, which --profile is of", item,
                         l->longest);
    if (l->sample_count + 1 == SLC_EXTENTS_MOST)
        return slc_error(SLUICE_ERR_ARGUMENT, "--shorter: more than %d profiles", SLC_EXTENTS_MOST - 1);
    slc_profile **profile = &l->shorter[l->sample_count];
    sluice_status status = slc_profile_read(end + 1, profile);
    if (status) return slc_error_context(status, "--shorter");
    l->samples[l->sample_count++] = (slc_extent_sample){(double)length / l->longest, &(*profile)->times};
    return SLUICE_OK;
}

static sluice_status read_all_shorter(const char *list, slc_plan_lengths *l)
{
    char *copy = strdup(list), *rest = copy, *item;
    sluice_status status = copy ? SLUICE_OK : slc_error(SLUICE_ERR_MEMORY, "--shorter");
    while (!status && (item = strsep(&rest, ","))) status = read_shorter(item, l);
    free(copy);
    return status;
}

sluice_status slc_plan_lengths_read(slc_training_options *recipe, const char *budget, const char *shorter,
                                    slc_plan_lengths *out)
{
    *out = (slc_plan_lengths){.longest = 0};
    slc_recipe_length length = {.most = 0};
    sluice_status status = SLUICE_OK;
    if (!slc_length_options_vary(recipe))
        return shorter ? slc_error(SLUICE_ERR_ARGUMENT, "--shorter: give a --recipe whose lengths change") : status;
    status = slc_length_options_read(recipe, &length);
    if (!status) status = slc_length_options_check(recipe, length.most);
    if (status) return status;
    sluice_model_options model = SLUICE_INIT(sluice_model_options, .length = length.most);
    recipe->budget = budget ? budget : "";
    slc_length_options_set_model(recipe, out->plans.lengths, &model);
    out->longest = length.most;
    out->plans.count = (uint32_t)model.shape_count;
    return shorter ? read_all_shorter(shorter, out) : SLUICE_OK;
}

void slc_plan_lengths_fini(slc_plan_lengths *l)
{
    slc_plans_by_length_fini(&l->plans);
    for (uint32_t i = 0; i < SLC_EXTENTS_MOST; i++) slc_profile_destroy(l->shorter[i]);
    *l = (slc_plan_lengths){.longest = 0};
}

/* ---- Planning ---- */

static sluice_status check_layers(const slc_plan_lengths *l)
{
    const slc_job *job = &l->plans.whole.profile->job;
    for (uint32_t i = 0; i < l->sample_count; i++) {
        const slc_job *other = &l->shorter[i]->job;
        bool same = other->layer_count == job->layer_count;
        for (uint32_t k = 0; same && k < job->layer_count; k++) same = !strcmp(job->layers[k], other->layers[k]);
        if (!same)
            return slc_error(
                SLUICE_ERR_ARGUMENT,
                "--shorter: the profile of %.0f tokens has other layers than --profile; both must be of one "
                "model",
                l->samples[i].extent * l->longest);
    }
    return SLUICE_OK;
}

static sluice_status copy_profile(const slc_profile *profile, slc_profile **out)
{
    char *text = NULL;
    sluice_status status = slc_profile_to_json(profile, &text);
    if (!status) status = slc_profile_from_json(text, strlen(text), out);
    free(text);
    return status;
}

static sluice_status plan_length(slc_plan_lengths *l, uint32_t s, const slc_plan_request *request,
                                 uint64_t budget_bytes)
{
    slc_plan_answer answer = {0};
    sluice_status status = copy_profile(l->plans.whole.profile, &l->plans.profiles[s]);
    if (status) return status;
    slc_job *job = &l->plans.profiles[s]->job;
    for (uint32_t a = 0; a < job->activation_count; a++) {
        const uint64_t bytes = job->activations[a].bytes * l->plans.lengths[s] / l->longest;
        job->activations[a].bytes = slc_round_up(bytes, ACTIVATION_STEP);
    }
    slc_fit_extents(job, l->samples, l->sample_count, (double)l->plans.lengths[s] / l->longest, 1,
                    &l->plans.profiles[s]->times);
    slc_plan_request own = *request;
    own.times = &l->plans.profiles[s]->times;
    own.budget_bytes = budget_bytes;
    own.budget_of_dp = 0;
    status = slc_plan_for_budget(job, &own, &answer);
    l->plans.plans[s] = answer.plan;
    return slc_error_context(status, "the plan of %u tokens", l->plans.lengths[s]);
}

sluice_status slc_plan_lengths_plan(slc_plan_lengths *l, slc_phase_plan whole, const slc_plan_request *request,
                                    uint64_t budget_bytes)
{
    l->plans.whole = whole;
    if (!l->longest) return SLUICE_OK;
    sluice_status status = check_layers(l);
    l->samples[l->sample_count++] = (slc_extent_sample){1, &whole.profile->times};
    for (uint32_t s = 0; !status && s < l->plans.count; s++) status = plan_length(l, s, request, budget_bytes);
    return status;
}

/* ---- Phases ---- */

void slc_plan_lengths_set_times(void *context, const slc_phase_plan *under, const slc_recipe_step *size,
                                slc_times *times)
{
    const slc_plan_lengths *l = context;
    slc_fit_extents(&under->profile->job, l->samples, l->sample_count, (double)size->length / l->longest, size->pieces,
                    times);
}

void slc_plan_lengths_words(const slc_plan_lengths *l, char *text, size_t bytes)
{
    *text = 0;
    if (l->sample_count == 1)
        snprintf(text, bytes, "slot times of other lengths are in proportion to that of the profile, %u tokens",
                 l->longest);
    else if (l->longest)
        snprintf(text, bytes, "slot times of other lengths are fitted to those of %u profiles", l->sample_count);
}
