/* The kernels whose pace memory sets, with the bytes that each moves: the rows of `sluice-lab kernels`.
 *
 * To add a kernel, write a function that calls it on the case's arrays (out of place, so that every call does the
 * same), and a row {name, bytes, prepare, call} in kernel_table.c. `bytes` is the least that the kernel moves for each
 * element, in fp32 and in bf16: reads plus writes, each array once (kernels.md, section 2). `prepare` puts other
 * contents into the arrays if the kernel needs any instead of numbers in -1..1; it may be NULL. */
#ifndef SLC_BENCH_KERNEL_TABLE_H
#define SLC_BENCH_KERNEL_TABLE_H

#include "lib/device/device.h"

#include <sluice/dtype.h>

enum { SLC_KERNEL_ARRAYS = 5, SLC_KERNEL_VECTORS = 4 };

typedef struct {
    slc_stream stream;
    sluice_dtype dtype;
    uint64_t rows, channels, count; /* count = rows * channels */
    /* Each has room for count fp32 and is page aligned; it holds count numbers of `dtype` in -1..1. */
    void *array[SLC_KERNEL_ARRAYS];
    void *vector[SLC_KERNEL_VECTORS]; /* each has room for channels fp32 and holds numbers of `dtype` in -1..1 */
    float *statistic[2];              /* one for each row: 0.25 and 1.5 */
    int32_t *tokens;                  /* one for each row, in 0..rows-1; most values occur several times */
    void *workspace;                  /* of workspace_bytes, at least 16 MiB */
    uint64_t workspace_bytes;
} slc_kernel_case;

typedef struct {
    const char *name;
    double bytes[2]; /* bytes moved for each element, by sluice_dtype of the case */
    sluice_status (*prepare)(slc_kernel_case *);
    sluice_status (*call)(slc_kernel_case *);
} slc_kernel_row;

extern const slc_kernel_row slc_kernel_table[];
extern const uint32_t slc_kernel_table_rows;

#endif
