/* Matrix products of the host in a build without oneDNN: there are none. It stands in for gemm_tiles.c. */
#include "lib/kernels/gemm/gemm_tiles.h"

#include "lib/base/status.h"

static sluice_status lacking(void)
{
    return slc_error(SLUICE_ERR_UNSUPPORTED,
                     "kernel gemm: this build has no matrix products for the host; use --device "
                     "cuda, or build with oneDNN (libdnnl-dev)");
}

sluice_status slc_gemm_path(sluice_dtype dtype, bool *widened, bool *allocates, const char **name)
{
    (void)dtype, (void)widened, (void)allocates, (void)name;
    return lacking();
}

sluice_status slc_gemm_route_find(const sluice_stream *stream, const slc_gemm_shape *shape, slc_gemm_route *route)
{
    (void)stream, (void)shape, (void)route;
    return lacking();
}

sluice_status slc_gemm_route_run(const slc_gemm_route *route, const slc_gemm_operands *operands, void *workspace)
{
    (void)route, (void)operands, (void)workspace;
    return lacking();
}
