/* Trains of operations of the job's own kind, timed where they are carried out: made-up operations that follow each
 * other without a pause, each of which notes when it is complete. On a device that runs ahead an event in its stream
 * notes it. Private to lib/engine/measure. */
#pragma once

#include "lib/engine/measure/measure.h"
#include "lib/plan/times.h"

typedef enum { SLC_TRAIN_REDUCTIONS, SLC_TRAIN_GATHERS, SLC_TRAIN_BOTH, SLC_TRAIN_UPDATES } slc_train_kind;

enum { SLC_TRAIN_LEAST = 8 }; /* operations of a train whose figures count */

/* The memory in which a measurement works, and the sizes that it works on. */
typedef struct {
    sluice_runtime *rt;
    uint64_t offset, bytes; /* of the arena, claimed */
    unsigned char *link, *compute;
    uint64_t link_bytes, compute_elements;
    uint64_t grain;          /* bytes */
    uint64_t block_elements; /* of operations: the job's, or as many as the scratch allows */
    double share;            /* of the usual durations that measurements take */
    sluice_dtype dtype;      /* of the gradients of the job's first unit */
    bool ahead;              /* the device runs ahead of the host */
    /* The compute of overlap.h: a piece is so many calls of a kernel on so many elements. */
    uint64_t kernel_elements;
    uint32_t launches;
    slc_measure *m; /* holds the times of the train that ran last; it outlives operations that a failure leaves */
} slc_measure_lab;

/* A train: `count` operations of `bytes` each, 1 <= count <= SLC_TRAIN_MAX. Operations that touch different bytes
 * overlap, as in a step. Updates are computed by the communication thread and move nothing; with one rank no operation
 * moves anything. */
typedef struct {
    slc_train_kind kind;
    uint64_t bytes;
    uint32_t count;
    bool alone;     /* slc_op.alone: kernels may be launched for the first time */
    uint32_t first; /* set on submission: the number of its begin; operation i, from 1, has number first + i */
} slc_train;

/* Makes the events that trains need on a device that runs ahead; slc_measure_destroy frees them. Errors: MEMORY, those
 * of the device. */
sluice_status slc_trains_begin(slc_measure_lab *lab);

/* Submits a begin, at which ranks meet, and the operations behind it. slc_train_wait ends the train. */
sluice_status slc_train_submit(slc_measure_lab *lab, slc_train *train);
/* Waits until the train is done. */
sluice_status slc_train_wait(slc_measure_lab *lab, const slc_train *train);

/* Seconds between the completions of operations `from` and `to` of the train that ended last; 0 is its begin. */
double slc_train_s(const slc_measure_lab *lab, uint32_t from, uint32_t to);

/* Runs a train. *seconds is the time of one operation once the train goes steadily, on this rank. */
sluice_status slc_train_run(slc_measure_lab *lab, slc_train *train, double *seconds);
/* Runs a train. *seconds becomes one operation's steady time, *took_s the train's, both on the slowest rank. */
sluice_status slc_train_run_together(slc_measure_lab *lab, slc_train *train, double *seconds, double *took_s);

/* Number of operations that last about `seconds` together when one lasts `one_s`, at least `least`. */
uint32_t slc_train_length(double seconds, double one_s, uint32_t least);

/* Measures how many seconds of the communication thread it takes to start and end one operation, on the slowest rank.
 */
sluice_status slc_train_operation_s(slc_measure_lab *lab, double *operation_s);

/* Rounds down to whole grains, at least one. */
static inline uint64_t slc_lab_grains(const slc_measure_lab *lab, uint64_t bytes)
{
    const uint64_t rounded = bytes / lab->grain * lab->grain;
    return rounded ? rounded : lab->grain;
}
