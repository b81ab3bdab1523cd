/* oneDNN's matmul primitives, the only use of oneDNN; built for 2.x and 3.x. There is one for each shape and thread
 * count, made once under a lock and never removed or changed, so that a later get finds it and allocates nothing. */
#pragma once

#include "lib/kernels/gemm/gemm.h"

typedef struct slc_gemm_primitive slc_gemm_primitive;

typedef enum {
    SLC_GEMM_BY_NONE,   /* oneDNN has no primitive for this shape */
    SLC_GEMM_BY_LOOPS,  /* oneDNN's reference: slow */
    SLC_GEMM_BY_GEMM,   /* oneDNN's older code: allocates inside the call; bf16 is emulated */
    SLC_GEMM_BY_BRGEMM, /* oneDNN's newer code, for AVX-512 and AMX (2.x): wants dense rows and the caller's scratch */
} slc_gemm_quality;

typedef struct {
    slc_gemm_shape shape;
    bool packed_b; /* B is in the layout that slc_gemm_primitive_pack writes, the one that oneDNN likes best */
} slc_gemm_product;

/* Finds or makes a primitive, which is never freed. One of quality NONE cannot be run. Errors: MEMORY, SYSTEM. */
sluice_status slc_gemm_primitive_get(const slc_gemm_product *product, uint32_t threads, const slc_gemm_primitive **out);
slc_gemm_quality slc_gemm_primitive_quality(const slc_gemm_primitive *primitive);
const char *slc_gemm_primitive_name(const slc_gemm_primitive *primitive); /* as "brg:avx512_core_bf16" */
uint64_t slc_gemm_primitive_scratch_bytes(const slc_gemm_primitive *primitive);
sluice_status slc_gemm_primitive_run(const slc_gemm_primitive *primitive, const slc_gemm_operands *operands,
                                     void *scratch);

/* These two functions are for primitives with packed_b. */
uint64_t slc_gemm_primitive_packed_bytes(const slc_gemm_primitive *primitive);
sluice_status slc_gemm_primitive_pack(const slc_gemm_primitive *primitive, const sluice_stream *stream, const void *b,
                                      void *packed);
