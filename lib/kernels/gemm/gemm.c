/* The functions of gemm.h: checks, and the way through gemm_tiles.h. */
#include "lib/kernels/gemm/gemm.h"

#include "lib/base/status.h"
#include "lib/device/cuda.h"
#include "lib/kernels/gemm/gemm_cuda.h"
#include "lib/kernels/gemm/gemm_tiles.h"
#include "lib/kernels/host.h"

static sluice_status check(const sluice_stream *stream, const slc_gemm_shape *s)
{
    const uint64_t most = INT32_MAX;
    if (!s->m || !s->n || !s->k || s->m > most || s->n > most || s->k > most)
        return slc_error(SLUICE_ERR_ARGUMENT, "kernel gemm: %llu x %llu x %llu; each from 1 to 2^31-1",
                         (unsigned long long)s->m, (unsigned long long)s->n, (unsigned long long)s->k);
    if ((s->lda && s->lda < (s->transpose_a ? s->m : s->k)) || (s->ldb && s->ldb < (s->transpose_b ? s->k : s->n)) ||
        (s->ldc && s->ldc < s->n))
        return slc_error(SLUICE_ERR_ARGUMENT, "kernel gemm: a row is longer than its distance to the next");
    if (s->out != SLUICE_FP32 && s->out != s->dtype)
        return slc_error(SLUICE_ERR_ARGUMENT, "kernel gemm: %s out of %s; give fp32 or %s", sluice_dtype_name(s->out),
                         sluice_dtype_name(s->dtype), sluice_dtype_name(s->dtype));
    return SLC_ON_CUDA(stream) ? SLUICE_OK : slc_host_check(stream, "gemm");
}

static sluice_status check_operands(const slc_gemm_shape *s, const slc_gemm_operands *x)
{
    if (s->bias == (x->bias != NULL) && s->residual == (x->residual != NULL)) return SLUICE_OK;
    return slc_error(SLUICE_ERR_ARGUMENT, "kernel gemm: bias and residual are given exactly when the shape has them");
}

sluice_status slc_gemm_workspace_bytes(const sluice_stream *stream, const slc_gemm_shape *shape, uint64_t *bytes)
{
    slc_gemm_route route;
    sluice_status status = check(stream, shape);
    if (!status && SLC_ON_CUDA(stream)) {
        *bytes = slc_gemm_cuda_bytes(shape);
        return SLUICE_OK;
    }
    if (!status) status = slc_gemm_route_find(stream, shape, &route);
    if (!status) *bytes = route.bytes;
    return status;
}

sluice_status slc_gemm(sluice_stream *stream, const slc_gemm_shape *shape, const slc_gemm_operands *operands,
                       void *workspace, uint64_t workspace_bytes)
{
    slc_gemm_route route;
    sluice_status status = check(stream, shape);
    if (!status) status = check_operands(shape, operands);
    if (!status && SLC_ON_CUDA(stream)) {
        const uint64_t needed = slc_gemm_cuda_bytes(shape);
        if (workspace_bytes >= needed) return slc_gemm_cuda(stream, shape, operands, workspace);
        return slc_error(SLUICE_ERR_ARGUMENT, "kernel gemm: workspace of %llu bytes, %llu are needed",
                         (unsigned long long)workspace_bytes, (unsigned long long)needed);
    }
    if (!status) status = slc_gemm_route_find(stream, shape, &route);
    if (status) return status;
    if (workspace_bytes < route.bytes)
        return slc_error(SLUICE_ERR_ARGUMENT, "kernel gemm: workspace of %llu bytes, %llu are needed",
                         (unsigned long long)workspace_bytes, (unsigned long long)route.bytes);
    return slc_gemm_route_run(&route, operands, workspace);
}
