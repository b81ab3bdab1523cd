/* Pipelines in a sweep. Each pipeline is a strategy with a name of its own, next to the strategies of runs without a
 * pipeline. --micro-batches is then the number of a step, which the ranks or the replicas of a pipeline share, so that
 * all runs of one number train the same batch. */
#pragma once

#include "bench/train/options/options.h"

enum { SLC_BENCH_PIPELINES_MAX = 64 };

/* The strings live as long as the process. */
typedef struct {
    const char *item;              /* its text in the list of strategies: "pipeline 2 1f1b" */
    const char *name;              /* as a strategy: "pipeline 2" */
    const char *stages, *schedule; /* "2", "1f1b" */
} slc_bench_pipeline;

typedef struct {
    slc_bench_pipeline of[SLC_BENCH_PIPELINES_MAX];
    uint64_t count;
} slc_bench_pipelines;

/* Adds the pipeline of so many stages. Errors: ARGUMENT (a number that is none, too many), MEMORY. */
sluice_status slc_bench_pipelines_add(slc_bench_pipelines *pipelines, const char *stages, const char *schedule);
/* Returns the pipeline whose item is this text; NULL: there is none. */
const slc_bench_pipeline *slc_bench_pipelines_find(const slc_bench_pipelines *pipelines, const char *item);
/* Sets the options of a run of this pipeline. */
void slc_bench_pipeline_set(const slc_bench_pipeline *pipeline, slc_training_options *training);
/* Checks that `ranks` ranks can share so many micro-batches of a step, under options of which the pipeline is set.
 * `strategy` names the run. Errors: ARGUMENT, which names numbers that work. */
sluice_status slc_bench_pipelines_check(const slc_training_options *training, uint64_t ranks, uint64_t micro_batches,
                                        const char *strategy);
