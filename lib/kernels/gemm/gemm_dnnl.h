/* oneDNN's matmul primitives, the only way to oneDNN; built for 2.x and 3.x. One a shape and thread count, made once
 * under a lock, never removed or changed, so that a later get finds it and allocates nothing. */
#ifndef SLC_KERNEL_GEMM_DNNL_H
#define SLC_KERNEL_GEMM_DNNL_H

#include "lib/kernels/gemm/gemm.h"

typedef struct slc_gemm_primitive slc_gemm_primitive;

typedef struct {
    const void *a, *b, *bias, *residual;
    void *c;
} slc_gemm_operands;

/* UNSUPPORTED where oneDNN has none. */
sluice_status slc_gemm_primitive_get(const slc_gemm_shape *shape, uint32_t threads, const slc_gemm_primitive **out);
uint64_t slc_gemm_primitive_scratch_bytes(const slc_gemm_primitive *primitive);
sluice_status slc_gemm_primitive_run(const slc_gemm_primitive *primitive, const slc_gemm_operands *operands,
                                     void *scratch);

/* Of a primitive with packed_b. */
uint64_t slc_gemm_primitive_packed_bytes(const slc_gemm_primitive *primitive);
sluice_status slc_gemm_primitive_pack(const slc_gemm_primitive *primitive, const void *b, void *packed);

#endif
