/* What `sluice-lab overhead` trains: equal layers of one parameter each, whose compute is a loop of a fixed length and,
 * in backward, a gradient that depends on nothing but rank, layer and element. The same functions run under the engine
 * and bare, and count the CPU time that they take, so that it can be set apart. */
#ifndef SLC_BENCH_OVERHEAD_MODEL_H
#define SLC_BENCH_OVERHEAD_MODEL_H

#include "lib/device/device.h"

#include <sluice/optimizer.h>
#include <time.h>

typedef struct {
    uint32_t layers;
    uint64_t elements;    /* of a layer; a multiple of 16 * ranks */
    uint64_t block_bytes; /* base block */
    uint64_t turns;       /* of the loop, a slot */
    int rank;
    uint64_t compute_ns; /* CPU time of forwards and backwards so far, of the calling thread */
} slc_overhead_model;

uint64_t slc_overhead_cpu_ns(clockid_t clock);

/* Turns of the loop that take about `seconds` of CPU time. */
uint64_t slc_overhead_calibrate(double seconds);

void slc_overhead_forward(slc_overhead_model *model, const float *value);
/* Writes the whole gradient. */
void slc_overhead_backward(slc_overhead_model *model, uint32_t layer, const float *value, float *gradient);

/* AdamW that counts the CPU time of its kernel, of the thread that calls it; read it when nothing is pending. */
typedef struct {
    sluice_optimizer optimizer, adamw;
    slc_device *device;
    slc_stream stream;
    uint64_t update_ns;
} slc_overhead_optimizer;

sluice_status slc_overhead_optimizer_open(slc_overhead_optimizer *optimizer); /* must stay where it is */
void slc_overhead_optimizer_close(slc_overhead_optimizer *optimizer);

/* Fnv-1a over words, for comparing weights; begin with SLC_OVERHEAD_HASH. */
static const uint64_t SLC_OVERHEAD_HASH = 0xcbf29ce484222325u;
uint64_t slc_overhead_hash(uint64_t hash, const float *values, uint64_t count);

#endif
