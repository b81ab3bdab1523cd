/* Products with few rows of A, where reading B takes the time: B is read once, in the order in which it lies in memory,
 * and used for all rows. Sums are in fp32 and rounded once. B with whole columns (stored n x k) gives dot products,
 * else blocks of columns are summed row by row. Threads share the columns, so their number changes no bit; instruction
 * sets that multiply and add at once round otherwise than those that do not, and so does the instruction for pairs of
 * bf16, which takes subnormal numbers for 0, as oneDNN's products of bf16 do. */
#pragma once

#include "lib/kernels/gemm/gemm.h"
#include "lib/kernels/isa.h"

/* Returns true if this kernel is the faster one for this product; it knows no factor. Strides in the shape are true
 * distances, never 0. */
bool slc_gemm_few_takes(const slc_gemm_shape *shape);
uint64_t slc_gemm_few_bytes(const slc_gemm_shape *shape); /* of workspace, aligned to 64 */
void slc_gemm_few(const sluice_stream *stream, const slc_gemm_shape *shape, const slc_gemm_operands *operands,
                  void *workspace);

/* ---- Forms ---- */

enum { SLC_GEMM_FEW_UNIT = 32 }; /* columns of a thread begin at a multiple of it */

typedef struct {
    sluice_dtype dtype; /* of B */
    const slc_gemm_shape *shape;
    const slc_gemm_operands *operands;
    /* A's m rows of k elements in fp32; the kernel for pairs of bf16 reads A as it is. For dot products of bf16 each
     * whole group of 32 elements has those at even places first. */
    const float *a;
    uint64_t lda;
    float *sums; /* m times n rounded up to a unit; for sums by row alone */
} slc_gemm_few_args;

SLC_ISA_DECLARE(slc_gemm_few_dots); /* over ranges of columns */
SLC_ISA_DECLARE(slc_gemm_few_sums);
#if defined(__x86_64__)
SLC_ISA_DECLARE(slc_gemm_few_pairs); /* sums by row of bf16, only with AVX-512, for slc_isa_has_bf16 */
#endif
