/* The event simulator of a pipeline: P programs run beside each other, each on a compute lane of its own. A stage also
 * has one egress, which sends one thing at a time, and a thread that updates. Replicas of a stage do the same, so one
 * of them stands for all. Memory is not modelled here: it limits how many micro-batches a schedule holds, and that is
 * in the order of its tasks. */
#pragma once

#include "lib/plan/plan.h"
#include "sched/pipeline/program.h"

enum { SLC_NO_OPERATION = UINT32_MAX };

/* A reduction, an update or a gather of a stage, once a step (with updates_each: once a micro-batch). Listed stage by
 * stage; the egress takes those of a stage that are ready in the order in which they became so. */
typedef struct {
    uint32_t stage, piece;
    slc_item_kind kind;  /* these two only name it */
    uint32_t unit;       /* SLC_NONE: of no unit */
    double before_end_s; /* ready so long before the end of the piece's last gradient task of the step, */
    uint32_t earlier;    /* or of the one so many micro-batches before that; 0 with updates_each */
    double link_s;       /* on the egress; or */
    double thread_s;     /* on the thread */
    double within_s; /* the piece's first forward of the step that reads the result needs it so long after its start;
                        below 0: no forward waits */
    uint32_t after;  /* number of an operation of the same stage that must have ended; SLC_NO_OPERATION: none */
    bool after_rows; /* the step's gradients of looked-up rows must have arrived */
    bool agrees;     /* ends when this operation of every stage has: link_s after the last one is ready */
} slc_stage_operation;

/* A gather of a unit's values before a slot that reads them, in each micro-batch: of units under fsdp that are not
 * held. Listed piece by piece, of each its forward and then its backward, in the order of the slots. Places in a task
 * count without waits. */
typedef struct {
    uint32_t piece, unit;
    bool backward;
    double at_s;    /* the slot that reads it begins so long after the task's start, or as soon as it is there */
    double ahead_s; /* it is asked for so long after the task's start, when the slot before begins. Below 0: when the
                       task before begins its last slot */
    double link_s;  /* on the egress */
    uint32_t after; /* in a later step than the first: number of an operation of the same stage that must have ended in
                       the step before; SLC_NO_OPERATION: none */
} slc_stage_gather;

typedef struct {
    const double *forward_s, *input_s, *weight_s; /* [pieces] */
    /* [pieces - 1] a message behind each piece, on the egress of its sender: an activation forward, its gradient back.
     * NULL: messages take no time. Between pieces of one stage there is no message. */
    const double *forward_message_s, *backward_message_s;
    double latency_s; /* from the end of a message at its sender until it is there */
    /* Rows of a table that lies where the last piece is and is looked up in the first one: for each micro-batch a
     * message there before its forward, and one back after its backward. 0: there is no such table. */
    double rows_s;
    const slc_stage_operation *operations;
    uint32_t operation_count;
    const slc_stage_gather *gathers;
    uint32_t gather_count;
    /* [pieces] seconds of the last slot of a forward, of a backward: the first gathers of the next task are asked for
     * when it begins. NULL: when it ends. */
    const double *forward_last_s, *backward_last_s;
} slc_pipeline_times;

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

/* Simulates. `options` NULL: exact, with the smallest memory for messages. With the steps of slc_pipeline_steady_steps
 * the period is that of a step which has others before and after it; with one step everything runs from an empty
 * pipeline until it is empty again. Deterministic. The caller frees the forecast by slc_pipeline_forecast_fini, after
 * an error too. Errors: MEMORY; FORMAT (nothing can go on: the error names the stages and the tasks that they wait at).
 */
sluice_status slc_pipeline_simulate(const slc_pipeline_program *program, const slc_pipeline_times *times,
                                    const slc_pipeline_simulation *options, slc_pipeline_forecast *out);
void slc_pipeline_forecast_fini(slc_pipeline_forecast *forecast);

/* Steps of a program in which one in the middle is in the steady state. */
uint32_t slc_pipeline_steady_steps(const slc_pipeline_schedule *schedule, const slc_pipeline_shape *shape);
