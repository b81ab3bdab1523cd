/* How a product is run: as one primitive on the operands where they lie, or tile by tile, where oneDNN would be slow
 * or allocate. A tile's operands are copied into the workspace as far as needed: A and C where their rows lie apart,
 * B into packed form where its rows' distance hurts, all of them, widened to fp32, where this processor has no fast
 * bf16. A copied tile of C is summed over k in fp32 and rounded once. */
#ifndef SLC_KERNEL_GEMM_TILES_H
#define SLC_KERNEL_GEMM_TILES_H

#include "lib/kernels/gemm/gemm_dnnl.h"

typedef struct {
    const slc_stream *stream;
    slc_gemm_shape shape; /* with the true distances of rows */
    uint32_t threads;
    bool widen, copy_a, pack_b, copy_c;
    uint64_t m, n, k;                   /* of a tile; the last ones are smaller */
    uint64_t a_at, b_at, c_at, bias_at; /* in the workspace */
    uint64_t scratch_at, bytes;
} slc_gemm_route;

/* Makes all primitives that running needs. Errors: UNSUPPORTED, MEMORY, SYSTEM. */
sluice_status slc_gemm_route_find(const slc_stream *stream, const slc_gemm_shape *shape, slc_gemm_route *route);
sluice_status slc_gemm_route_run(const slc_gemm_route *route, const slc_gemm_operands *operands, void *workspace);

/* The primitive that packs B for this shape; NULL where nothing is gained. */
sluice_status slc_gemm_route_packing(const slc_stream *stream, const slc_gemm_shape *shape,
                                     const slc_gemm_primitive **out);

#endif
