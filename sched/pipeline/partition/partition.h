/* Programmes that cut a chain of layers into stages: the best cuts, and replicas too if the schedule has no idle
 * time. Bytes here are sums over a stage's layers, a bound by which cuts are chosen; the packer has the last word. */
#pragma once

#include <sluice/status.h>
#include <stdbool.h>
#include <stdint.h>

/* A chain of layers, a micro-batch at a time. Borrowed. */
typedef struct {
    uint32_t layers;
    const double *layer_s; /* [layers] seconds of a micro-batch's slots */
    const bool *uncut;     /* [layers - 1] no cut behind this layer; NULL: cuts are free */
    /* [layers] bytes that a stage keeps for good, without values; of one version of the values; and for each
     * micro-batch that it holds. NULL: none. */
    const uint64_t *fixed_bytes, *value_bytes, *kept_bytes;
} slc_chain;

/* ---- Schedules that flush ---- */

typedef struct {
    slc_chain chain;
    uint32_t stages, micro_batches;
    const double *cut_s;    /* [layers - 1] what the messages behind a layer add to the stages on both sides; NULL: 0 */
    const double *tail_s;   /* [layers] of a layer's reduction and update; NULL: 0 */
    const double *hidden_s; /* [stages] how much of that a stage has idle time for; NULL: 0 */
    const uint32_t *held;   /* [stages] micro-batches that it holds; NULL: 1 */
    const uint64_t *limit_bytes; /* [stages]; NULL: none */
} slc_flushed_partition;

/* Finds the cuts that minimise
 *   sum of t_s + (M - 1) max t_s + max tail_s
 * with t_s the seconds of stage s and tail_s what its idle time does not hide, over cuts whose stages all fit: fixed +
 * values + held * kept <= limit. first_layer [stages] gets each stage's first layer, *cost_s the minimum, INFINITY if
 * no cuts fit (first_layer is not filled then). The cuts are exactly the best: the possible maxima are tried in
 * ascending order until (M - 1) max and the least sum and tail together reach the best cost. Errors: ARGUMENT (more
 * stages than layers), MEMORY. */
sluice_status slc_partition_flushed(const slc_flushed_partition *in, uint32_t *first_layer, double *cost_s);

/* Finds the smallest limit, the same for all stages, for which some cuts fit, and the cuts; in->limit_bytes is not
 * read. *bytes is UINT64_MAX if there are no cuts at all, because too many are not allowed. */
sluice_status slc_partition_least_bytes(const slc_flushed_partition *in, uint32_t *first_layer, uint64_t *bytes);

/* ---- Schedules that do not flush ---- */

/* Ranks that reach each other at one bandwidth: those of a host, or hosts. */
typedef struct {
    uint32_t ranks;
    double bytes_per_s; /* of a rank's egress */
} slc_partition_level;

typedef struct {
    slc_chain chain;
    const uint64_t *boundary_bytes; /* [layers - 1] across the cut behind a layer, one way */
    uint32_t versions;              /* of the values; 0: as many as micro-batches held */
    uint64_t limit_bytes;           /* of a rank; 0: none */
    uint32_t micro_batches;         /* between two updates, which share what keeping values equal takes; 0: 1 */
    slc_partition_level levels[2];  /* [0] within a host; [1] of hosts: its ranks are hosts. levels[1].ranks <= 1: one
                                       level */
} slc_steady_partition;

typedef struct {
    uint32_t first_layer, end_layer;
    uint32_t replicas; /* on each of `hosts` hosts */
    uint32_t hosts;    /* 1 if there is one level */
} slc_steady_stage;

/* Finds the stages and replicas that minimise the period of a micro-batch (PipeDream, Narayanan et al. 2019), with all
 * ranks in use. With t the seconds of layers i..j, w their values, a_k the bytes across the cut behind layer k, beta
 * the bandwidth, M the micro-batches between two updates (PipeDream's own has 1):
 *   T(i,j,r) = (t + 4 (r-1) w / (r beta M)) / r
 *   A(j,r)   = min(T(0,j,r), min over k, r' of max(A(k,r-r'), 2 a_k / (beta r'), T(k+1,j,r')))
 * With hosts, T of hosts has A of layers i..j on one host's ranks in the place of t, with the hosts' bandwidth. A stage
 * holds ceil(n / r) micro-batches, n the ranks of its stage and of those after it, r its replicas; it fits if fixed +
 * versions * values + held * kept <= limit. `stages` has room for all ranks; *count of them are filled, 0 if nothing
 * fits, with *period_s INFINITY. Errors: MEMORY. */
sluice_status slc_partition_steady(const slc_steady_partition *in, slc_steady_stage *stages, uint32_t *count,
                                   double *period_s);
