/* The times of a pipeline's tasks, and of what its stages do beside them: what a simulation starts from. */
#pragma once

#include "lib/plan/plan.h"
#include "sched/pipeline/program/program.h"

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

/* Returns the seconds of a task without waits. */
static inline double slc_task_duration(const slc_pipeline_times *times, const slc_task *task)
{
    switch (task->kind) {
    case SLC_TASK_FORWARD: return times->forward_s[task->piece];
    case SLC_TASK_BACKWARD: return times->input_s[task->piece] + times->weight_s[task->piece];
    case SLC_TASK_INPUT: return times->input_s[task->piece];
    default: return times->weight_s[task->piece];
    }
}
