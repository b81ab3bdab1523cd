/* Measures the engine's own cost: a model is trained data-parallel by the engine and by hand, in turn. Collective. */
#pragma once

#include <sluice/world.h>
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

/* Measures the engine beside training by hand, under strategy dp and schedule serial. Errors: MISMATCH if the weights
 * made by hand differ from the engine's; those of the runtime. */
sluice_status slc_overhead_measure(sluice_world *world, const slc_overhead_config *config, slc_overhead_row *row);
