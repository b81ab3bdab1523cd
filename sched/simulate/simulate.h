/* The event simulator: runs a plan's training program on two lanes as the engine does, with the profile's times. Memory
 * is modelled only by the plan's own waits, which hold the tickets already. */
#pragma once

#include "lib/plan/times.h"
#include "sched/simulate/forecast.h"

/* Simulates a plan that slc_plan_validate accepts, or would accept. `options` NULL: exact. Deterministic. Where steps
 * draw the layers that they keep (slc_times.keeps) the forecast is the mean over a few draws, always the same, and not
 * `steady`. Errors: MEMORY; FORMAT if nothing can go on (a defect of the plan). */
sluice_status slc_simulate(const slc_job *job, const slc_times *times, const slc_plan *plan,
                           const slc_simulation *options, slc_forecast *out);

/* Simulates as slc_simulate does, and tells when each item of the last simulated pass starts and ends, in seconds from
 * the start of the first item that this pass computes (late items, and those that the lane ran ahead, may be negative
 * or beyond step_s). Where steps draw layers, it is a pass in which each item takes what it takes in the mean,
 * stretched to the mean step. `items` has room for plan->train.item_count. */
sluice_status slc_simulate_items(const slc_job *job, const slc_times *times, const slc_plan *plan,
                                 const slc_simulation *options, slc_forecast *out, slc_item_times *items);
