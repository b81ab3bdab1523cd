/* C = op(A) op(B) (+ C) (+ bias), fp32, row-major. op(A) is m x k, op(B) is k x n, C is m x n.
 * By oneDNN (the only file that calls it is gemm_dnnl.c; built for 2.x and 3.x). Where B is transposed and A is not,
 * scratch is the caller's workspace, 64-byte aligned. The other products go through dnnl_sgemm, the faster one there,
 * which allocates packing buffers of its own inside the call: 1 to 6 MiB a thread measured on GPT-2's shapes. A model
 * reserves SLC_GEMM_OWN_BYTES a thread for them, so that they count in the budget. */
#ifndef SLC_KERNEL_GEMM_H
#define SLC_KERNEL_GEMM_H

#include "lib/kernels/kernel.h"

#include <stdbool.h>

enum { SLC_GEMM_OWN_BYTES = 8 << 20 };

typedef struct {
    bool transpose_a, transpose_b; /* stored as k x m, n x k */
    bool accumulate;               /* C += instead of C = */
    bool bias;                     /* adds bias[n] to every row */
    uint64_t m, n, k;
    uint64_t lda, ldb, ldc; /* elements between stored rows; 0: dense */
} slc_gemm_shape;

/* Bytes of workspace that this shape needs with this many threads. Creates and caches what the library needs, so that
 * a later slc_gemm of the shape allocates nothing. */
sluice_status slc_gemm_workspace_bytes(const slc_stream *stream, const slc_gemm_shape *shape, uint64_t *bytes);

/* `bias` NULL unless shape->bias. Errors: ARGUMENT, UNSUPPORTED (no CPU primitive), MEMORY. */
sluice_status slc_gemm(slc_stream *stream, const slc_gemm_shape *shape, const float *a, const float *b,
                       const float *bias, float *c, void *workspace, uint64_t workspace_bytes);

#endif
