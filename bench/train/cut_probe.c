/* tests/command/train/pipeline_train_test.sh covers this file. */
#include "bench/train/cut_probe.h"

#include "bench/train/data/step_batches.h"
#include "bench/train/options/options.h"
#include "lib/base/log.h"
#include "lib/base/status.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* LEAST_MICRO_BATCHES: the median leaves out the first micro-batch, which touches memory and matrix products for the
 * first time. LEAST_STEPS: measuring takes a step, and measured cuts have saved up to an eighth of each step. */
enum { LEAST_MICRO_BATCHES = 3, LEAST_STEPS = 8 };

bool slc_cut_probe_pays(const slc_training_options *o)
{
    return slc_training_stages(o) && o->steps >= LEAST_STEPS;
}

static uint32_t micro_batches_of(const slc_cut_probe *probe)
{
    const uint64_t stages = slc_training_stages(probe->options);
    return stages > LEAST_MICRO_BATCHES ? (uint32_t)stages : LEAST_MICRO_BATCHES;
}

typedef struct {
    sluice_runtime *rt;
    sluice_model *model;
    slc_step_batches *batches;
} trial;

static sluice_status make_trial(const slc_cut_probe *probe, trial *t)
{
    const uint32_t micro_batches = micro_batches_of(probe);
    sluice_model_options options = *probe->model_options;
    sluice_config config;
    sluice_status status = slc_training_config(probe->options, &config);
    if (status) return status;
    options.micro_batches = config.micro_batches = micro_batches;
    config.pipeline_schedule = "1f1b";
    config.pipeline_chunks = 1;
    config.pipeline_cuts = NULL;
    config.plan_file = NULL;
    status = sluice_runtime_create(probe->world, &config, &t->rt);
    if (!status) status = sluice_model_create(t->rt, probe->model, &options, &t->model);
    if (!status)
        status = slc_step_batches_create(probe->model, options.batch, options.length, micro_batches, &t->batches);
    return status ? status : sluice_runtime_commit(t->rt);
}

static sluice_status run_step(const slc_cut_probe *probe, trial *t)
{
    sluice_status status = SLUICE_OK;
    bool here;
    for (uint32_t m = 0; !status && m < micro_batches_of(probe); m++) {
        sluice_batch batch;
        status =
            slc_training_data_take(probe->data, SLC_DATA_HELD_OUT, (uint64_t)m * probe->model_options->batch, &batch);
        if (!status) slc_step_batches_put(t->batches, m, &batch);
    }
    if (!status) status = sluice_step_begin(t->rt, &SLUICE_INIT(sluice_step_options, .learning_rate = 0));
    if (!status) status = sluice_model_step(t->model, slc_step_batches_all(t->batches), &here);
    return status ? status : sluice_step_end(t->rt, NULL);
}

/* Joins what ranks have measured; a layer's times are the longest. */
static sluice_status join_times(sluice_world *world, slc_cut_times *times)
{
    const size_t count = 2 * (size_t)times->layer_count, ranks = (size_t)sluice_world_size(world);
    double *all = calloc(ranks * count, sizeof *all);
    if (!all) return slc_error(SLUICE_ERR_MEMORY, "times of %zu ranks", ranks);
    sluice_status status = sluice_world_all_gather(world, times->forward_s, count * sizeof *all, all);
    for (size_t i = 0; !status && i < ranks * count; i++)
        times->forward_s[i % count] = fmax(times->forward_s[i % count], all[i]);
    free(all);
    return status;
}

static sluice_status read_times(const slc_cut_probe *probe, const trial *t, slc_cut_times *out)
{
    sluice_stage_report report = SLUICE_INIT(sluice_stage_report);
    sluice_status status = sluice_runtime_stage(t->rt, &report);
    if (status) return status;
    out->forward_s = calloc(2 * (size_t)report.layer_count, sizeof *out->forward_s);
    if (!out->forward_s) return slc_error(SLUICE_ERR_MEMORY, "times of %u layers", report.layer_count);
    out->layer_count = report.layer_count;
    out->backward_s = out->forward_s + report.layer_count;
    for (uint32_t l = 0; !status && l < out->layer_count; l++)
        status = sluice_runtime_layer_times(t->rt, l, &out->forward_s[l], &out->backward_s[l]);
    if (!status) status = join_times(probe->world, out);
    out->besides = SLUICE_INIT(sluice_stage_times);
    return status ? status : sluice_runtime_stage_times(t->rt, &out->besides);
}

sluice_status slc_cut_probe_measure(const slc_cut_probe *probe, slc_cut_times *out)
{
    trial t = {0};
    *out = (slc_cut_times){0};
    sluice_status status = make_trial(probe, &t);
    const bool fits = status != SLUICE_ERR_BUDGET;
    if (!status) status = run_step(probe, &t);
    if (!status) status = read_times(probe, &t, out);
    slc_step_batches_destroy(t.batches);
    sluice_model_destroy(t.model);
    sluice_runtime_destroy(t.rt);
    if (fits) return status;
    if (sluice_world_rank(probe->world) == 0)
        slc_log(SLC_LOG_INFO,
                "a step of %u micro-batches does not fit the budget: cuts go by sizes, not by measured times",
                micro_batches_of(probe));
    return SLUICE_OK;
}

sluice_status slc_cut_times_tell(const slc_cut_times *times, sluice_runtime *rt)
{
    sluice_status status = SLUICE_OK;
    for (uint32_t l = 0; !status && l < times->layer_count; l++)
        status = sluice_runtime_layer_times_set(rt, l, times->forward_s[l], times->backward_s[l]);
    return status || !times->layer_count ? status : sluice_runtime_stage_times_set(rt, &times->besides);
}

void slc_cut_times_fini(slc_cut_times *times)
{
    free(times->forward_s);
    *times = (slc_cut_times){0};
}
