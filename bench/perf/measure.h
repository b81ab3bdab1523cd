/* One collective, or a ring of transfers, measured and checked at one size after another, as nccl-tests does:
 * iterations are submitted back to back and waited for once. Collective: every rank makes the same calls. */
#pragma once

#include "lib/comm/comm.h"

#include <stdbool.h>

typedef struct {
    const char *device; /* "cpu" or "cuda" */
    slc_op_kind kind;   /* a reduction by sum, a gather or a broadcast */
    sluice_dtype dtype; /* SLUICE_FP32 or SLUICE_BF16 */
    bool in_place;      /* reduce_scatter and all_gather work in one buffer, as the others always do */
    /* Valid with SLC_REDUCE_SCATTER: the reduction is done in place and block by block, and each block is gathered
     * again once `ahead` further ones are submitted, as in a step of training. The result and the bytes are those of an
     * all-reduce. */
    bool gather_after;
    uint32_t ahead;
    bool ring;   /* no collective, and `kind` is SLC_CALL: each rank sends the buffer to the next one */
    bool beside; /* the calling thread computes at the same time */
    bool copy;   /* measure plain copies too, if all ranks reach each other through memory */
    uint64_t most_bytes, block_bytes;
    uint32_t iterations, warm_up;
    uint32_t checks; /* how often the result is checked, each time of other values; 0: never */
    bool any_order;  /* on GPUs a sum may be the transport's own */
    bool average;    /* a sum is divided by the number of ranks if it is checked; its time is the same */
} slc_perf_config;

typedef struct {
    /* Size of the whole buffer, as slc_perf_size rounds it. 0, which a GPU does not take: ranks meet, and no data
     * moves. */
    uint64_t bytes;
    /* Elements that a rank gives (gather) or gets (reduce_scatter, send_receive); all elements for the others. */
    uint64_t count;
    double time_s;                                 /* time of one operation, mean over iterations and ranks */
    double time_min_s, time_max_s;                 /* the shortest and the longest of any iteration on any rank */
    double algorithm_bytes_per_s, bus_bytes_per_s; /* as in nccl-tests, doc/PERFORMANCE.md */
    uint64_t wrong;                                /* number of wrong elements on all ranks */
    /* With `beside`: a rank's floating-point operations per second, without and with communication, mean over ranks;
     * all ranks compute at the same time. */
    double compute_alone, compute_beside;
    /* With `copy`: the time of plain copies in all ranks at once, from the memory that the operation reads to this
     * rank's, of half as many bytes as the operation has to read and write; 0: it was not measured. */
    double copy_time_s;
} slc_perf_row;

typedef struct slc_perf slc_perf;

/* The bytes that are measured if `bytes` are asked for: rounded down so that every rank owns a multiple of 16
 * elements, but not below 16 elements a rank; 0 stays 0. */
uint64_t slc_perf_size(sluice_dtype dtype, int ranks, uint64_t bytes);

/* The caller closes *out before the world. Errors, the same on every rank: ARGUMENT (the ranks of a host need more
 * memory than it, or their GPU, has left, found before any is taken; `beside` with more operations in an iteration than
 * the queue holds; `ring` with one rank), MEMORY, SYSTEM, UNSUPPORTED (no such device; `ring` on GPUs; GPUs without a
 * transport that has collectives; `beside` without oneDNN, or cublasLt on a GPU). */
sluice_status slc_perf_open(sluice_world *world, const slc_perf_config *config, slc_perf **out);
/* `bytes` are a size that slc_perf_size has rounded. */
sluice_status slc_perf_measure(slc_perf *perf, uint64_t bytes, slc_perf_row *row);
void slc_perf_close(slc_perf *perf); /* NULL is allowed */
