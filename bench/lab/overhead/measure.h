/* What the engine itself costs: one plan, run by the engine and by hand, by turns. Collective. */
#ifndef SLC_BENCH_OVERHEAD_MEASURE_H
#define SLC_BENCH_OVERHEAD_MEASURE_H

#include <sluice/world.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct {
    uint32_t layers, rounds, steps;
    uint64_t layer_bytes, block_bytes;
    double slot_s; /* compute of a forward or backward */
} slc_overhead_config;

/* Medians over rounds of means over steps and ranks, in seconds of a step. A difference is formed in each round,
 * between runs next to each other. */
typedef struct {
    uint32_t operations, blocks;  /* of a step; base blocks, which operations move in runs */
    double step_s, cpu_s;         /* wall time and CPU time of both threads, of a rank, under the engine */
    double caller_s, thread_s;    /* the engine's own CPU time on the calling and on the communication thread */
    double watch_s;               /* looking for NaN, agreeing on it: CPU time */
    double gates_s;               /* CPU time of waiting and waking, no engine involved */
    double wall_same, wall_plain; /* wall time of the engine over that by hand, with and without NaN watched for */
    double spread_s;              /* of the engine's own CPU time: half the range of the middle half of rounds */
} slc_overhead_row;

/* A plan as the runtime makes it: times are measured first where the schedule wants them. `by_block`: instead, made for
 * a link that a single block saturates, so that a schedule that cuts layers moves each block by itself. */
typedef struct {
    const char *strategy, *schedule;
    bool by_block;
} slc_overhead_plan;

/* Errors: MISMATCH when the weights by hand are not the engine's; what runtime and planner say. */
sluice_status slc_overhead_measure(sluice_world *world, const slc_overhead_config *config,
                                   const slc_overhead_plan *plan, slc_overhead_row *row);

#endif
