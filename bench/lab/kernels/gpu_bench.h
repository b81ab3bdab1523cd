/* Measures work on a GPU by the times of its events, by turns with a copy from one piece of the GPU's memory to
 * another. Memory-bound kernels are compared with this copy, which also leaves nothing of a kernel's data in the
 * caches. One thread. */
#pragma once

#include "lib/device/device.h"

#include <jansson.h>
#include <sluice/dtype.h>
#include <stdio.h>

enum { SLC_GPU_MOST_ROUNDS = 1000 };

typedef struct {
    slc_device *device;
    sluice_stream stream;
    slc_segment from, to; /* of the copy */
    slc_pinned pattern;   /* numbers of both types in -1..1 */
    slc_event begin, between, end;
    const char *op, *dtype; /* NULL: all */
    uint32_t rounds;
    bool small; /* sizes that an emulated GPU can afford */
    FILE *table;
    json_t *rows;
    uint32_t measured, failed;
} slc_gpu_bench;

/* One row of the table. */
typedef struct {
    const char *name;
    sluice_dtype dtype;
    char shape[48];
    double bytes, flops;                  /* moved and computed by one call; 0: that is not its measure */
    sluice_status (*call)(void *context); /* queues the work on the bench's stream */
    void *context;
} slc_gpu_work;

/* Takes the GPU, and op, dtype, rounds, small, table and rows as they are set; begins the table. Errors: those of the
 * device, MEMORY. */
sluice_status slc_gpu_bench_open(slc_gpu_bench *bench);
void slc_gpu_bench_close(slc_gpu_bench *bench); /* a zeroed device is allowed */

/* True if the options ask for measurements of this operation in this type. */
bool slc_gpu_bench_wants(const slc_gpu_bench *bench, const char *op, sluice_dtype dtype);

/* Queues copies that fill an array of the GPU with numbers of the type in -1..1. */
sluice_status slc_gpu_bench_fill(slc_gpu_bench *bench, sluice_dtype dtype, uint64_t count, void *at);
/* Queues copies of [at, at + some) behind itself, again and again, up to at + bytes. */
sluice_status slc_gpu_bench_repeat(slc_gpu_bench *bench, void *at, uint64_t some, uint64_t bytes);

/* Adds the row. Work that fails gets a row with its error and is counted in `failed`. Errors: MEMORY (of the host). */
sluice_status slc_gpu_bench_measure(slc_gpu_bench *bench, const slc_gpu_work *work);
/* The row of work that could not even be prepared, with the last error. */
sluice_status slc_gpu_bench_fail(slc_gpu_bench *bench, const slc_gpu_work *work);
