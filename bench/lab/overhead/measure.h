/* Measures the engine's own cost: one plan is run by the engine and by hand, in turn. Collective. */
#pragma once

#include <sluice/world.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct {
    uint32_t layers, rounds, steps;
    uint64_t layer_bytes, block_bytes;
    double slot_s; /* compute time of a forward or backward slot */
} slc_overhead_config;

/* Figures in seconds of a step: medians over rounds of means over steps and ranks. Each difference is taken within a
 * round, between runs that follow each other. */
typedef struct {
    uint32_t operations, blocks; /* operations of a step; base blocks, which operations move in runs */
    double step_s, cpu_s;        /* wall time of a rank under the engine, and CPU time of its two threads */
    double caller_s, thread_s;   /* the engine's own CPU time on the calling thread and on the communication thread */
    double wall_ratio;           /* wall time under the engine divided by that by hand */
    double spread_s; /* spread of the engine's own CPU time: half the range of the middle half of the rounds */
} slc_overhead_row;

/* A plan made as the runtime makes it: times are measured first if the schedule needs them. `by_block`: the plan is
 * made for a link that a single block saturates, so that a schedule that cuts layers moves each block alone. */
typedef struct {
    const char *strategy, *schedule;
    bool by_block;
} slc_overhead_plan;

/* Errors: MISMATCH if the weights made by hand differ from the engine's; those of runtime and planner. */
sluice_status slc_overhead_measure(sluice_world *world, const slc_overhead_config *config,
                                   const slc_overhead_plan *plan, slc_overhead_row *row);
