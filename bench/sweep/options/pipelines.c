/* tests/command/measure/bench_pipeline_test.sh covers this file. */
#include "bench/sweep/options/pipelines.h"

#include "lib/base/status.h"

#include <stdio.h>
#include <string.h>

enum { NAME_BYTES = 48 };

sluice_status slc_bench_pipelines_add(slc_bench_pipelines *pipelines, const char *stages, const char *schedule)
{
    const slc_training_options one = {.pipeline = stages};
    char name[NAME_BYTES], item[NAME_BYTES];
    if (!slc_training_stages(&one) || slc_training_stages(&one) == UINT64_MAX)
        return slc_error(SLUICE_ERR_ARGUMENT, "--pipeline %s: give off, or from 2 to %d stages", stages,
                         SLC_TRAINING_STAGES_MOST);
    if (pipelines->count == SLC_BENCH_PIPELINES_MAX)
        return slc_error(SLUICE_ERR_ARGUMENT, "--pipeline: more than %d values", SLC_BENCH_PIPELINES_MAX);
    snprintf(name, sizeof name, "pipeline %.8s", stages);
    snprintf(item, sizeof item, "%.20s %.24s", name, schedule);
    const slc_bench_pipeline added = {slc_option_keep(item), slc_option_keep(name), slc_option_keep(stages),
                                      slc_option_keep(schedule)};
    if (!added.item || !added.name || !added.stages || !added.schedule)
        return slc_error(SLUICE_ERR_MEMORY, "--pipeline");
    pipelines->of[pipelines->count++] = added;
    return SLUICE_OK;
}

const slc_bench_pipeline *slc_bench_pipelines_find(const slc_bench_pipelines *pipelines, const char *item)
{
    for (uint64_t i = 0; i < pipelines->count; i++)
        if (!strcmp(item, pipelines->of[i].item)) return &pipelines->of[i];
    return NULL;
}

void slc_bench_pipeline_set(const slc_bench_pipeline *pipeline, slc_training_options *training)
{
    training->pipeline = pipeline->stages;
    training->pipeline_schedule = pipeline->schedule;
    training->strategy = "auto";
    training->schedule = "one_ahead"; /* says nothing in a pipeline */
    if (slc_training_speaks(training)) training->tied = "split";
}

sluice_status slc_bench_pipelines_check(const slc_training_options *training, uint64_t ranks, uint64_t micro_batches,
                                        const char *strategy)
{
    const uint64_t stages = slc_training_stages(training), sharers = slc_training_replicas(training, ranks);
    if (stages && ranks % stages)
        return slc_error(SLUICE_ERR_ARGUMENT, "--pipeline %llu: %llu ranks are no multiple of %llu stages",
                         (unsigned long long)stages, (unsigned long long)ranks, (unsigned long long)stages);
    if (micro_batches % sharers == 0) return SLUICE_OK;
    return slc_error(SLUICE_ERR_ARGUMENT,
                     "--micro-batches %llu: beside --pipeline these are of a step, which %llu ranks share in %s: give "
                     "multiples of %llu",
                     (unsigned long long)micro_batches, (unsigned long long)sharers, strategy,
                     (unsigned long long)sharers);
}
