/* The model that `sluice-lab overhead` trains: equal layers of one parameter each. Their compute is a loop of a fixed
 * length and, in backward, a gradient that depends only on rank, layer and element. The same functions run under the
 * engine and by hand, and count the CPU time that they take, so that it can be subtracted. */
#pragma once

#include "lib/device/device.h"

#include <sluice/optimizer.h>

typedef struct {
    uint32_t layers;
    uint64_t elements;    /* elements of a layer; a multiple of 16 * ranks */
    uint64_t block_bytes; /* bytes of a base block */
    uint64_t turns;       /* turns of the loop in a slot */
    int rank;
    uint64_t compute_ns; /* CPU time of all forwards and backwards so far, on the calling thread */
} slc_overhead_model;

/* Returns the number of turns of the loop that take about `seconds` of CPU time. */
uint64_t slc_overhead_calibrate(double seconds);

void slc_overhead_forward(slc_overhead_model *model, const float *value);
/* Writes the whole gradient. */
void slc_overhead_backward(slc_overhead_model *model, uint32_t layer, const float *value, float *gradient);

/* AdamW that counts the CPU time of its kernel on the thread that calls it. Read the count when nothing is pending. */
typedef struct {
    sluice_optimizer optimizer, adamw;
    slc_device *device;
    sluice_stream stream;
    uint64_t update_ns;
} slc_overhead_optimizer;

/* *optimizer must not be moved afterwards. */
sluice_status slc_overhead_optimizer_open(slc_overhead_optimizer *optimizer);
void slc_overhead_optimizer_close(slc_overhead_optimizer *optimizer);
