/* The kernels whose pace memory sets, and what each moves: the rows of `sluice-lab kernels`.
 *
 * To add one: write a function that calls the kernel on the case's arrays (out of place, so that every call does the
 * same), and a row in kernel_table.c {name, bytes, prepare, call}. `bytes` is what an element moves at least, for fp32
 * and for bf16: reads plus writes, each array once (kernels.md, section 2). `prepare`, or NULL, puts into the arrays
 * what the kernel needs there instead of numbers in -1..1. */
#ifndef SLC_BENCH_KERNEL_TABLE_H
#define SLC_BENCH_KERNEL_TABLE_H

#include "lib/device/device.h"

#include <sluice/dtype.h>

enum { SLC_KERNEL_ARRAYS = 5, SLC_KERNEL_VECTORS = 4 };

typedef struct {
    slc_stream stream;
    sluice_dtype dtype;
    uint64_t rows, channels, count;   /* count = rows * channels */
    void *array[SLC_KERNEL_ARRAYS];   /* room for count fp32 each, page aligned; count numbers of `dtype` in -1..1 */
    void *vector[SLC_KERNEL_VECTORS]; /* room for channels fp32 each; numbers of `dtype` in -1..1 */
    float *statistic[2];              /* one a row: 0.25 and 1.5 */
    int32_t *tokens;                  /* one a row: in 0..rows-1, most of them several times */
    void *workspace;                  /* workspace_bytes, at least 16 MiB */
    uint64_t workspace_bytes;
} slc_kernel_case;

typedef struct {
    const char *name;
    double bytes[2]; /* that an element moves, by sluice_dtype of the case */
    sluice_status (*prepare)(slc_kernel_case *);
    sluice_status (*call)(slc_kernel_case *);
} slc_kernel_row;

extern const slc_kernel_row slc_kernel_table[];
extern const uint32_t slc_kernel_table_rows;

#endif
