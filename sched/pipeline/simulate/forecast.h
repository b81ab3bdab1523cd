/* The forecast of a pipeline: when each task and transfer of a simulation ran, and what one of its steps takes. */
#pragma once

#include "sched/pipeline/simulate/pipeline_times.h"

/* Seconds from the simulation's begin. NaN: it has not come to that. */
typedef struct {
    double start_s, end_s; /* a forward that waits inside for an operation ends later than its duration says */
} slc_task_time;

typedef enum {
    SLC_TRANSFER_FORWARD,
    SLC_TRANSFER_BACKWARD,
    SLC_TRANSFER_ROWS,
    SLC_TRANSFER_ROW_GRADIENTS,
    SLC_TRANSFER_OPERATION,
    SLC_TRANSFER_GATHER
} slc_transfer_kind;

/* One thing that an egress or a thread did. */
typedef struct {
    slc_transfer_kind kind;
    uint32_t from, to; /* stages; the same for an operation */
    /* A message: the piece and the micro-batch of the task that reads it. An operation: its number, and its step. A
     * gather: its number, and the micro-batch. */
    uint32_t piece, micro_batch;
    double start_s, end_s; /* on the egress or the thread */
} slc_transfer;

/* Seconds of a stage in the period of a step. compute_s, exposed_s and idle_s add up to that period. */
typedef struct {
    double compute_s;    /* its tasks */
    double exposed_s;    /* tasks that have begun wait for operations and gathers of their stage */
    double idle_s;       /* no task runs: the stage waits for a message, or for the others' step to end */
    double messages_s;   /* its egress sends to other stages */
    double operations_s; /* its egress works for operations and gathers of the stage */
} slc_stage_forecast;

typedef struct {
    double step_s;     /* the period of a step; with one or two steps: until everything is over, for each step */
    double idle_share; /* idle_s and exposed_s over the period, the mean of the stages */
    double from_s;     /* where the period begins that `stages` tells of */
    slc_stage_forecast *stages; /* [P] */
    slc_task_time *tasks;       /* [P task_count], in the program's order */
    slc_transfer *transfers;
    uint32_t transfer_count;
} slc_pipeline_forecast;

/* Steps of a program in which one in the middle is in the steady state. */
uint32_t slc_pipeline_steady_steps(const slc_pipeline_schedule *schedule, const slc_pipeline_shape *shape);

/* Works out all but the lists from one period of the simulated steps, where out->stages is zeroed and all was over at
 * over_s. The period runs from one moment to the same one a step later, so it holds a whole step of each stage. */
void slc_pipeline_conclude(const slc_pipeline_program *program, const slc_pipeline_times *times, double over_s,
                           slc_pipeline_forecast *out);

void slc_pipeline_forecast_fini(slc_pipeline_forecast *forecast);
