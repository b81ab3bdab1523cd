/* Layers whose compute takes known times: what the programs that train as DDP and FSDP do share. A layer's compute is a
 * nap on the compute stream. */
#pragma once

#include "tests/nccl/programs/shared/ranks.h"

enum { LAYERS_MAX = 64 };

typedef struct {
    int layers, steps;
    size_t elements[LAYERS_MAX]; /* fp32, a multiple of 48 */
    int64_t forward_ns[LAYERS_MAX], backward_ns[LAYERS_MAX], optimizer_ns;
    bool prefetch; /* FSDP: the next layer's values are gathered while a layer computes */
} slc_layers;

/* Reads --layers MS,MS,… (backward times, in forward order; a forward takes half as long), --bytes N,N,… (of gradients;
 * the last number counts for all that follow), --optimizer MS, --steps N, --no-prefetch. Ends the process if the
 * command line says anything else but what is slc_ranks_run's. Without these options there are six layers of 256 KiB
 * and twelve steps. */
void slc_layers_read(slc_layers *layers, int argc, char **argv);

/* A nap, and how long it really took: a machine with other work to do wakes sleepers late. */
typedef struct {
    int64_t ns;
    double *took_s; /* [count] */
    int count, room;
} slc_nap;

/* The naps of a rank. */
typedef struct {
    slc_nap forward[LAYERS_MAX], backward[LAYERS_MAX], optimizer;
    double *took_s;
} slc_naps;

void slc_naps_init(slc_naps *naps, const slc_layers *layers);
void slc_naps_fini(slc_naps *naps);

/* Puts a nap on the stream, at most `steps` times. */
void slc_layers_nap(cudaStream_t stream, slc_nap *nap);

/* Lets `later` wait for all that `earlier` has got so far. */
void slc_layers_follow(cudaStream_t later, cudaStream_t earlier, cudaEvent_t event);

/* Fills `count` floats of the device with a value, and checks that they have it. */
void slc_layers_fill(float *memory, size_t count, float value);
void slc_layers_check(slc_rank *rank, const float *memory, size_t count, float value, int layer);

/* Seconds of a clock. */
double slc_layers_now_s(void);

/* Lets `step` put one step after another on the compute stream and on those that it joins at its end; the host runs
 * ahead of the device by at most two steps. Returns when the last one is done: how long the steps took, of which the
 * caller frees the array. */
double *slc_layers_train(const slc_layers *layers, cudaStream_t compute, void (*step)(void *trainer), void *trainer);

/* Prints on standard error what really happened, as medians: on rank 0 "step_s X"; on every rank "compute_s RANK", then
 * the forwards, the backwards, and what lies between two steps' gradients: the optimizer, the forward, the first
 * backward. `step_s` is slc_layers_train's, whose first step does not count. Reorders the times. */
void slc_layers_report(const slc_rank *rank, const slc_layers *layers, slc_naps *naps, double *step_s);
