/* C = factor (op(A) op(B) + bias) + residual (+ C), row-major. op(A) is m x k, op(B) is k x n, C is m x n.
 * On the host oneDNN computes it: in fp32, or in bf16 with products summed in fp32 and rounded once, in C. If the
 * processor has no bf16 (AVX-512-BF16 or AMX), tiles are widened to fp32 in the workspace; slc_gemm_path says so. In a
 * build without oneDNN all this is UNSUPPORTED, and a GPU multiplies alone.
 *
 * A primitive is made once for a shape and thread count, under a lock, and kept; later calls make only handles of a
 * few hundred bytes. Any thread may call, each with its own stream and workspace. For a fixed thread count results
 * repeat to the bit; between processors they differ. */
#pragma once

#include "lib/kernels/kernel.h"

#include <sluice/dtype.h>
#include <stdbool.h>

typedef struct {
    sluice_dtype dtype;            /* type of A, B and bias */
    sluice_dtype out;              /* type of C and residual: fp32, or the same as dtype */
    bool transpose_a, transpose_b; /* stored as k x m, n x k */
    bool accumulate;               /* C += instead of C = */
    bool bias;                     /* bias[n], added to every row */
    bool residual;                 /* m x n, with the row distance of C; may not overlap C */
    uint64_t m, n, k;
    uint64_t lda, ldb, ldc; /* elements between stored rows; 0: dense */
    bool factor;            /* false: it is 1 */
} slc_gemm_shape;

typedef struct {
    const void *a, *b;
    const void *bias, *residual; /* NULL unless the shape has them */
    void *c;
    float factor; /* not looked at unless the shape has it */
} slc_gemm_operands;

/* Gives the bytes of workspace, 64-byte aligned, that this shape needs with the stream's thread count. Makes the
 * primitive that slc_gemm then uses. */
sluice_status slc_gemm_workspace_bytes(const sluice_stream *stream, const slc_gemm_shape *shape, uint64_t *bytes);

/* Computes the product. Errors: ARGUMENT, UNSUPPORTED (no primitive for this processor, no oneDNN, no cublasLt),
 * MEMORY, SYSTEM. */
sluice_status slc_gemm(sluice_stream *stream, const slc_gemm_shape *shape, const slc_gemm_operands *operands,
                       void *workspace, uint64_t workspace_bytes);

/* Tells how products of this type run on the host. name: oneDNN's name of its code. widened: they run as fp32.
 * allocates: without AVX-512, oneDNN packs into memory of its own during a call, at most SLC_GEMM_OWN_BYTES for each
 * thread; with AVX-512 it allocates nothing. */
enum { SLC_GEMM_OWN_BYTES = 8 << 20 };
sluice_status slc_gemm_path(sluice_dtype dtype, bool *widened, bool *allocates, const char **name);

/* The plain loops in float64: every array is of double. */
void slc_gemm_ref(const slc_gemm_shape *shape, const slc_gemm_operands *operands);
