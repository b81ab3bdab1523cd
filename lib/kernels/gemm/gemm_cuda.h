/* Matrix products on the GPU, by cublasLt, which is looked for when the first is asked for: among what the process has
 * loaded, where the loader looks, in the folder SLUICE_CUDA_LIBRARIES. The algorithm of a shape is chosen once and
 * kept, so that results repeat to the bit. Any thread may call. */
#pragma once

#include "lib/kernels/gemm/gemm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes of workspace for a shape. */
uint64_t slc_gemm_cuda_bytes(const slc_gemm_shape *shape);

/* Does what slc_gemm does on a GPU, with a shape and operands that were checked. In bf16 the factor's product with the
 * bias is rounded to bf16 before it is added. Errors: UNSUPPORTED (accumulation with a residual, or no cublasLt),
 * SYSTEM. */
sluice_status slc_gemm_cuda(sluice_stream *stream, const slc_gemm_shape *shape, const slc_gemm_operands *operands,
                            void *workspace);

/* c[row * stride + column] += factor * bias[column], for a bias in bf16 and a result in fp32, which cublasLt does not
 * join. */
sluice_status slc_gemm_add_bias_cuda(sluice_stream *stream, uint64_t rows, uint64_t columns, const uint16_t *bias,
                                     float factor, float *c, uint64_t stride);
/* scaled[column] = factor * bias[column], both of type `dtype`: cublasLt multiplies the product alone. */
sluice_status slc_gemm_scale_bias_cuda(sluice_stream *stream, sluice_dtype dtype, uint64_t columns, const void *bias,
                                       float factor, void *scaled);

#ifdef __cplusplus
}
#endif
