/* Memory at the fullest moment of a step, by layer and category: what a plan's budget is spent on. */
#pragma once

#include "sched/simulate/memory_series.h"

/* A layer; a unit that several layers share, which follows the first of them; or one of the two last columns: what
 * belongs to no layer, and what is not in use at that moment. */
typedef struct {
    const char *name;
    uint64_t bytes[SLC_MEMORY_CATEGORIES];
    uint64_t unused; /* bytes of the plan that nothing holds now; only in the last column */
} slc_memory_column;

typedef struct {
    double at_s;   /* when the fullest moment begins */
    uint32_t slot; /* that computes then; SLC_NONE: compute waits */
    slc_memory_column *columns;
    uint32_t count;
    uint64_t live_bytes;    /* the sum of all columns but `unused`: the most at any moment */
    uint64_t planned_bytes; /* the sum of all columns: the plan's arena and what the program reserves */
} slc_memory_peak;

/* Finds the peak of the training program. `items` and `series` are of one simulated step; they, the job and the plan
 * must outlive the result, which slc_memory_peak_fini frees. Errors: MEMORY. */
sluice_status slc_memory_peak_find(const slc_job *job, const slc_plan *plan, const slc_item_times *items,
                                   const slc_memory_series *series, double step_s, slc_memory_peak *out);
void slc_memory_peak_fini(slc_memory_peak *peak);

/* Writes "in the backward of h.3" or "while compute waits". */
void slc_memory_peak_name(const slc_job *job, const slc_memory_peak *peak, char *text, size_t size);
