/* One collective, measured and checked at one size after another, as nccl-tests does: iterations are submitted back to
 * back and waited for once. Collective: every rank makes the same calls. */
#ifndef SLC_BENCH_PERF_MEASURE_H
#define SLC_BENCH_PERF_MEASURE_H

#include "lib/comm/comm.h"

#include <stdbool.h>

typedef struct {
    slc_op_kind kind; /* of fp32 sums, or a gather or broadcast of fp32 */
    /* With SLC_REDUCE_SCATTER: in place and block by block, each block gathered again once `ahead` further ones are
     * submitted, as a step of training does. The result, and the bytes, are those of an all-reduce. */
    bool gather_after;
    uint32_t ahead;
    bool beside; /* the calling thread computes meanwhile */
    uint64_t most_bytes, block_bytes;
    uint32_t iterations, warm_up;
    bool check;
} slc_perf_config;

typedef struct {
    uint64_t bytes; /* of the whole buffer: rounded so that every rank owns a multiple of 16 elements, at least 16 */
    uint64_t count; /* elements that a rank gives (gather) or gets (reduce-scatter); all of them for the others */
    double time_s;  /* of one operation, mean over iterations and ranks */
    double algorithm_bytes_per_s, bus_bytes_per_s; /* nccl-tests, doc/PERFORMANCE.md */
    uint64_t wrong;                                /* elements, over all ranks */
    /* beside: floating-point operations a second of a rank, mean over ranks; all ranks compute at a time */
    double compute_alone, compute_beside;
} slc_perf_row;

typedef struct slc_perf slc_perf;

/* The caller closes it before the world. Errors: MEMORY, SYSTEM, UNSUPPORTED (beside, without oneDNN), ARGUMENT
 * (beside, with more operations an iteration than the queue holds). */
sluice_status slc_perf_open(sluice_world *world, const slc_perf_config *config, slc_perf **out);
sluice_status slc_perf_measure(slc_perf *perf, uint64_t bytes, slc_perf_row *row);
void slc_perf_close(slc_perf *perf); /* NULL is allowed */

#endif
