/* The memory-bound kernels, with the bytes that each moves: the rows of `sluice-lab kernels`.
 *
 * To add a kernel, write a function that calls it on the case's arrays (out of place, so that every call does the
 * same), and a row {name, bytes, prepare, call, gpu} in kernel_table.c. `bytes` is the least that the kernel moves for
 * each element, in fp32 and in bf16: reads plus writes, each array once. `prepare` puts other contents into the arrays
 * if the kernel needs any instead of numbers in -1..1; it may be NULL. `gpu` says at which size the kernel is measured
 * on a GPU. The kernel finds what it reads or writes beside the arrays in the workspace, which begins as zeros. */
#pragma once

#include "lib/device/device.h"

#include <sluice/dtype.h>

enum { SLC_KERNEL_ARRAYS = 5, SLC_KERNEL_VECTORS = 4, SLC_KERNEL_CLASSES = 50257, SLC_KERNEL_PATCHES = 196 };
enum { SLC_KERNEL_IMAGE = 3 * 224 * 224 };

typedef struct {
    sluice_stream stream;
    sluice_dtype dtype;
    uint64_t rows, channels, count; /* count = rows * channels */
    /* Each has room for count fp32 and is page aligned; it holds count numbers of `dtype` in -1..1. */
    void *array[SLC_KERNEL_ARRAYS];
    void *vector[SLC_KERNEL_VECTORS]; /* each has room for channels fp32 and holds numbers of `dtype` in -1..1 */
    float *statistic[2];              /* one for each row: 0.25 and 1.5 */
    int32_t *tokens;                  /* one for each row, in 0..rows-1; most values occur several times */
    uint32_t *token_order;            /* slc_embedding_order of the tokens */
    void *workspace;                  /* of workspace_bytes, at least 16 MiB */
    uint64_t workspace_bytes;
} slc_kernel_case;

/* Sizes of a training step: gpu_kernels.c has the numbers. */
typedef enum {
    SLC_GPU_TOKENS,     /* GPT-2's rows of 768, one a token */
    SLC_GPU_WIDE,       /* and those of 3072 inside an MLP */
    SLC_GPU_PARAMETERS, /* all of its parameters */
    SLC_GPU_LOGITS,     /* rows of its vocabulary */
    SLC_GPU_IMAGES,     /* ViT's images */
    SLC_GPU_PATCHES     /* and their rows of 768, one a patch */
} slc_gpu_size;

typedef struct {
    const char *name;
    double bytes[2]; /* bytes moved for each element, by sluice_dtype of the case */
    /* Fills the arrays on the host, even if the kernel then runs on a GPU: they are copied there, again and again up to
     * the size of the case. So the function uses `count` and `array`, and fills every array evenly. */
    sluice_status (*prepare)(slc_kernel_case *);
    sluice_status (*call)(slc_kernel_case *);
    slc_gpu_size gpu;
} slc_kernel_row;

/* The bytes of all arrays of a case, whose dtype, rows, channels, count and workspace_bytes are set. */
uint64_t slc_kernel_case_bytes(const slc_kernel_case *c);
/* Points the arrays into a piece of so many bytes that begins at a page. */
void slc_kernel_case_lay_out(slc_kernel_case *c, void *base);
/* Writes what the arrays begin with; the host must reach them. */
void slc_kernel_case_fill(slc_kernel_case *c);

extern const slc_kernel_row slc_kernel_table[];
extern const uint32_t slc_kernel_table_rows;
