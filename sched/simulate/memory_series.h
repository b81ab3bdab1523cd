/* Memory over time: how many bytes of each category are claimed at every moment, and the highest address in use. For
 * pictures and traces. */
#ifndef SLC_MEMORY_SERIES_H
#define SLC_MEMORY_SERIES_H

#include "lib/memory/arena.h"
#include "sched/simulate/simulate.h"

#include <stddef.h>

/* From `at_s` until the next point. */
typedef struct {
    double at_s;
    uint64_t live[SLC_MEMORY_CATEGORIES]; /* bytes */
    uint64_t highest;                     /* end of the highest claim */
} slc_memory_point;

typedef struct {
    slc_memory_point *points; /* ascending; the first at the beginning of the time asked for */
    size_t count;
} slc_memory_series;

/* A claim as it really came about. */
typedef struct {
    const slc_claim *claim;
    double from_s, to_s;
} slc_claim_span;

/* Of given spans, and of the plan's statics all the time, from `begin_s` on. Moments closer than `tiny_s` are one.
 * Errors: MEMORY. */
sluice_status slc_memory_series_of(const slc_plan *plan, const slc_claim_span *spans, size_t count, double begin_s,
                                   double tiny_s, slc_memory_series *out);

/* One step of the steady state, [0, step_s), from what slc_simulate_items told. What of a claim lies before or behind
 * the step is the same step's of another pass. Errors: MEMORY. */
sluice_status slc_simulate_memory(const slc_plan *plan, const slc_item_times *items, double step_s,
                                  slc_memory_series *out);
void slc_memory_series_fini(slc_memory_series *series);

#endif
