/* The timeline of one step as a picture, drawn by gnuplot: the lanes as coloured boxes above memory by category. */
#pragma once

#include "sched/simulate/exposed.h"
#include "sched/simulate/memory_series.h"

/* The caller owns everything. */
typedef struct {
    const char *title;
    const slc_job *job;
    const slc_plan *plan;
    const slc_times *times;      /* that the plan was simulated with */
    const slc_item_times *items; /* of a steady step */
    const slc_exposure *exposures;
    uint32_t exposure_count;
    const slc_memory_series *memory; /* during [0, step_s) */
    double step_s;
    uint64_t budget_bytes; /* 0: none */
} slc_trace_picture;

/* Draws the picture into the file `path`. Errors: UNSUPPORTED (no gnuplot), PATH, IO, MEMORY. */
sluice_status slc_trace_picture_draw(const slc_trace_picture *picture, const char *path);
