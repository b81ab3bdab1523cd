/* Measuring what a profile needs. Private to lib/engine. */
#ifndef SLC_ENGINE_MEASURE_H
#define SLC_ENGINE_MEASURE_H

#include "lib/engine/runtime.h"
#include "lib/plan/times.h"

/* The link, as operations of this job find it: lines of RS and AG over sizes, what compute and communication do to each
 * other, the run that is long enough. Collective, between steps with nothing pending; the same result on every rank.
 * Works in the largest stretch of the plan's arena that nothing resident covers; a stretch too short for two sizes, or
 * a world of one, gives the estimate's lines. Below 1 s on a fast link, about 3 s at 100 Mbit/s. */
sluice_status slc_engine_measure_link(sluice_runtime *rt, slc_link *out);

/* Each value becomes the largest of all ranks'. Collective. */
sluice_status slc_measure_slowest(sluice_runtime *rt, double *values, size_t count);

#endif
