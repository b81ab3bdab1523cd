/* Memory over time: the bytes of each category that are claimed at every moment, and the highest address in use. For
 * pictures and traces. */
#pragma once

#include "lib/memory/arena.h"
#include "sched/simulate/simulate.h"

#include <stddef.h>

/* The memory from `at_s` until the next point. */
typedef struct {
    double at_s;
    uint64_t live[SLC_MEMORY_CATEGORIES]; /* bytes */
    uint64_t highest;                     /* end address of the highest claim */
} slc_memory_point;

typedef struct {
    slc_memory_point *points; /* ascending; the first is at the beginning of the time asked for */
    size_t count;
} slc_memory_series;

/* A claim with the times at which it was really made and released. */
typedef struct {
    const slc_claim *claim;
    double from_s, to_s;
} slc_claim_span;

/* Makes the series of the given spans, and of the plan's statics all the time, from `begin_s` on. Moments closer than
 * `tiny_s` are one. The caller calls slc_memory_series_fini. Errors: MEMORY. */
sluice_status slc_memory_series_of(const slc_plan *plan, const slc_claim_span *spans, size_t count, double begin_s,
                                   double tiny_s, slc_memory_series *out);

/* Makes the series of one step of the steady state, [0, step_s), from the times of slc_simulate_items. A claim that
 * reaches beyond the step also counts if other passes bring it into the step. Errors: MEMORY. */
sluice_status slc_simulate_memory(const slc_plan *plan, const slc_item_times *items, double step_s,
                                  slc_memory_series *out);
/* Counts how many times each claim of the training program is held at a moment of that step: copies [claim_count], more
 * than 1 if the claim of an earlier pass is still held too. Between two points of the series their bytes are its. */
void slc_simulate_held(const slc_plan *plan, const slc_item_times *items, double step_s, double at_s, uint32_t *copies);
void slc_memory_series_fini(slc_memory_series *series);
