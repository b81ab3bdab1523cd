/* Takes the steps of train up to commit, in a world that is imagined.
 * tests/command/plan/estimate_test.sh covers this file. */
#include "bench/estimate/survey.h"

#include "bench/train/data/data.h"
#include "bench/train/options/length_options.h"
#include "lib/comm/imagined_world.h"
#include "lib/engine/engine.h"

#include <stdio.h>
#include <string.h>

static sluice_status find_data(slc_survey *s)
{
    slc_training_data *data = NULL;
    if (strcmp(s->training->device, "cpu")) return SLUICE_OK; /* the budget is of the device's memory */
    sluice_status status = slc_training_data_open(s->training, &s->model, s->length, NULL, &data);
    if (!status) s->data_bytes = slc_training_data_get_facts(data)->bytes;
    if (!status) s->length_step = slc_training_data_get_facts(data)->length_step;
    slc_training_data_close(data);
    if (!status || s->training->data_count) return status;
    snprintf(s->no_data, sizeof s->no_data, "%s", sluice_last_error());
    return SLUICE_OK;
}

sluice_status slc_survey_begin(slc_survey *s)
{
    s->model = SLUICE_INIT(sluice_model_config);
    sluice_status status = slc_training_model(s->training, &s->model, &s->length);
    return status ? status : find_data(s);
}

static sluice_status register_model(const slc_survey *s, sluice_runtime *rt, sluice_model **model)
{
    sluice_model_options options = {.struct_size = sizeof(sluice_model_options),
                                    .batch = (uint32_t)s->training->batch,
                                    .length = s->length,
                                    .precision = s->training->layer_precision,
                                    .dropout_seed = s->training->seed,
                                    .length_step = s->length_step};
    uint32_t shapes[SLUICE_SHAPES_MOST];
    slc_length_options_set_model(s->training, shapes, &options);
    sluice_status status = sluice_model_create(rt, &s->model, &options, model);
    return status || !s->data_bytes ? status : sluice_runtime_reserve(rt, "training data", s->data_bytes);
}

static sluice_status survey_runtime(const slc_survey *s, sluice_runtime *rt, slc_profile **out)
{
    char name[160], source[320];
    snprintf(name, sizeof name, "%s %.100s, batch %llu", s->training->model, s->training->size,
             (unsigned long long)s->training->batch);
    snprintf(source, sizeof source, "estimated for %d rank%s: compute %s; link %s", s->ranks, s->ranks == 1 ? "" : "s",
             s->pace.compute, s->pace.link);
    sluice_model *model = NULL;
    sluice_status status = register_model(s, rt, &model);
    if (!status) status = slc_engine_survey(rt, name, source, out);
    sluice_model_destroy(model);
    if (!status) slc_pace_set_times(&s->pace, &s->model, (uint32_t)s->training->batch, s->length, *out);
    return status;
}

sluice_status slc_survey_profile(const slc_survey *s, const slc_survey_plan *plan, slc_profile **out)
{
    sluice_config config;
    sluice_world *world = NULL;
    sluice_runtime *rt = NULL;
    sluice_status status = slc_training_config(s->training, &config);
    config.strategy = plan->strategy;
    config.schedule = plan->schedule;
    config.budget_bytes = plan->budget_bytes;
    config.budget_of_dp = plan->budget_of_dp;
    if (!status) status = slc_world_imagine(s->ranks, s->ranks_a_host, &world);
    if (!status) status = sluice_runtime_create(world, &config, &rt);
    if (!status) status = survey_runtime(s, rt, out);
    sluice_runtime_destroy(rt);
    sluice_world_destroy(world);
    return status;
}
