/* Decides how a product is run: by gemm_few.h if A has few rows; else as one primitive on the operands in place, or
 * tile by tile if oneDNN would be slow or allocate. A tile's operands are copied into the workspace as far as needed: A
 * and C if their rows lie apart, B into packed form if the distance of its rows hurts, and all of them, widened to
 * fp32, if this processor has no fast bf16. A copied tile of C is summed over k in fp32 and rounded once. */
#pragma once

#include "lib/kernels/gemm/gemm_dnnl.h"

typedef struct {
    const sluice_stream *stream;
    slc_gemm_shape shape; /* with the true row distances, never 0 */
    uint32_t threads;
    bool few; /* by gemm_few.h: of what follows only `bytes` counts */
    bool widen, copy_a, pack_b, copy_c;
    uint64_t m, n, k;                   /* size of a tile; the last tiles are smaller */
    uint64_t a_at, b_at, c_at, bias_at; /* offsets in the workspace, in bytes */
    uint64_t scratch_at, bytes;
} slc_gemm_route;

/* Chooses the route and makes all primitives that running it needs. Errors: UNSUPPORTED, MEMORY, SYSTEM. */
sluice_status slc_gemm_route_find(const sluice_stream *stream, const slc_gemm_shape *shape, slc_gemm_route *route);
sluice_status slc_gemm_route_run(const slc_gemm_route *route, const slc_gemm_operands *operands, void *workspace);
