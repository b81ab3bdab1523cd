/* Trains of operations of the job's own kind, timed on the communication thread: made-up operations that follow each
 * other without a pause, each of which notes when it is complete. Private to lib/engine/measure. */
#pragma once

#include "lib/engine/measure/measure.h"
#include "lib/plan/times.h"

typedef enum { SLC_TRAIN_REDUCTIONS, SLC_TRAIN_GATHERS, SLC_TRAIN_BOTH, SLC_TRAIN_UPDATES } slc_train_kind;

/* Where a measurement works, and on what. */
typedef struct {
    sluice_runtime *rt;
    uint64_t offset, bytes; /* of the arena, claimed */
    unsigned char *link, *compute;
    uint64_t link_bytes, compute_elements;
    uint64_t grain;     /* bytes */
    double share;       /* of the usual durations that measurements take */
    sluice_dtype dtype; /* of the gradients of the job's first unit */
    slc_measure *m;     /* holds the times of the train that ran last; it outlives operations that a failure leaves */
} slc_measure_lab;

/* Operations of `bytes` each, 1 <= count <= SLC_TRAIN_MAX. Operations that touch different bytes overlap, as in a step.
 * Updates are computed by the communication thread and move nothing, as all do with one rank. */
typedef struct {
    slc_train_kind kind;
    uint64_t bytes;
    uint32_t count;
    uint32_t first; /* set on submission: the number of its barrier; operation i, from 1, has number first + i */
} slc_train;

/* Submits a barrier and the operations behind it. slc_comm_wait for first + count + 1 ends the train. */
sluice_status slc_train_submit(slc_measure_lab *lab, slc_train *train);

/* Seconds between the completions of operations `from` and `to` of the train that ended last; 0 is its barrier. */
double slc_train_s(const slc_measure_lab *lab, uint32_t from, uint32_t to);

/* Runs a train. *seconds is the time of one operation once the train goes steadily, on this rank. */
sluice_status slc_train_run(slc_measure_lab *lab, slc_train *train, double *seconds);

/* Number of operations that last about `seconds` together when one lasts `one_s`, at least `least`. */
uint32_t slc_train_length(double seconds, double one_s, uint32_t least);

/* Measures how many seconds of the communication thread it takes to start and end one operation, on the slowest rank.
 */
sluice_status slc_train_operation_s(slc_measure_lab *lab, double *operation_s);
