/* Places inside a task that have to do with gathers. Private to sched/pipeline. */
#pragma once

#include "sched/pipeline/simulate/pipeline_times.h"

enum { SLC_NEXT_GATHERS = UINT32_MAX };

/* A place in a task that asks for a gather (`needs` false), that needs it, or that asks for what the next task needs
 * first (`gather` SLC_NEXT_GATHERS). */
typedef struct {
    double at_s;
    uint32_t gather;
    bool needs;
} slc_task_stop;

size_t slc_pipeline_most_stops(const slc_pipeline_program *program, const slc_pipeline_times *times);

/* Writes the stops of each piece's forward and backward, in their order. Those of piece p's forward begin at
 * first[2 p], those of its backward at first[2 p + 1], and the last ones end at first[2 pieces]. */
void slc_pipeline_list_stops(const slc_pipeline_program *program, const slc_pipeline_times *times, slc_task_stop *stops,
                             uint32_t *first);
