/* The programs of all stages of a pipeline, over several steps: what the simulator runs, and what memory follows. */
#pragma once

#include "sched/pipeline/program/schedule.h"

typedef struct {
    const slc_pipeline_schedule *schedule;
    slc_pipeline_shape shape; /* of one step */
    uint32_t steps;
    uint32_t micro_batches; /* of all steps; step k has those from k M on */
    uint32_t task_count;    /* of each stage */
    slc_task *tasks;        /* stage s runs tasks[s * task_count] and those that follow it */
} slc_pipeline_program;

/* Makes the programs of so many steps, which slc_pipeline_program_fini frees. Errors: ARGUMENT (slc_pipeline_check),
 * MEMORY.
 */
sluice_status slc_pipeline_program_init(const slc_pipeline_schedule *schedule, const slc_pipeline_shape *shape,
                                        uint32_t steps, slc_pipeline_program *out);
void slc_pipeline_program_fini(slc_pipeline_program *program);

static inline const slc_task *slc_pipeline_tasks(const slc_pipeline_program *program, uint32_t stage)
{
    return program->tasks + (size_t)stage * program->task_count;
}

/* A micro-batch counts as held until its gradient has gone to the piece before, or until nothing of it is needed any
 * more. They differ if backwards are split. */
typedef enum { SLC_HELD_UNTIL_SENT, SLC_HELD_UNTIL_DONE } slc_held_until;

/* The most micro-batches whose forward a stage has begun and which it still holds, of one piece (the stage's chunk
 * `chunk`), or of all its chunks together, each chunk of a micro-batch counted as one. */
uint32_t slc_pipeline_held_of_chunk(const slc_pipeline_program *program, uint32_t stage, uint32_t chunk,
                                    slc_held_until until);
uint32_t slc_pipeline_held(const slc_pipeline_program *program, uint32_t stage, slc_held_until until);

/* Checks programs by themselves: each stage runs every task of its pieces once, a backward after its forward and a
 * WEIGHT after its INPUT; a piece's backwards and weight gradients run in the order of micro-batches; and both ends of
 * each channel (one direction between two neighbouring pieces) list its messages in one order. Errors: FORMAT (which
 * stage and task), MEMORY. */
sluice_status slc_pipeline_program_check(const slc_pipeline_program *program);
