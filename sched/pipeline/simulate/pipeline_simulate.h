/* The event simulator of a pipeline: P programs run beside each other, each on a compute lane of its own. A stage also
 * has one egress, which sends one thing at a time, and a thread that updates. Replicas of a stage do the same, so one
 * of them stands for all. Memory is not modelled here: it limits how many micro-batches a schedule holds, and that is
 * in the order of its tasks. */
#pragma once

#include "sched/pipeline/simulate/forecast.h"

typedef struct {
    /* A message moves only once its receive is posted: when all but so many of the tasks before the one that reads it
     * have begun. 0: slc_pipeline_ahead; UINT32_MAX: all receives are posted at once. */
    uint32_t ahead;
    /* A stage begins a task only while at most so many of its messages are under way. 0: 1; UINT32_MAX: any number. */
    uint32_t sends;
    bool blocking;  /* none may be: a stage computes nothing until what it has sent is received */
    double delay_s; /* every task and every message takes longer by a drawn time of up to this */
    uint64_t seed;  /* of those */
} slc_pipeline_simulation;

/* Simulates. `options` NULL: exact, with the smallest memory for messages. With the steps of slc_pipeline_steady_steps
 * the period is that of a step which has others before and after it; with one step everything runs from an empty
 * pipeline until it is empty again. Deterministic. The caller frees the forecast by slc_pipeline_forecast_fini, after
 * an error too. Errors: MEMORY; FORMAT (nothing can go on: the error names the stages and the tasks that they wait at).
 */
sluice_status slc_pipeline_simulate(const slc_pipeline_program *program, const slc_pipeline_times *times,
                                    const slc_pipeline_simulation *options, slc_pipeline_forecast *out);
