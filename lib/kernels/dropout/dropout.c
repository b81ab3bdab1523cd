/* Dropout alone is the residual kernel without its other terms. */
#include "lib/kernels/dropout/dropout.h"

#include "lib/base/status.h"
#include "lib/kernels/residual/residual.h"

sluice_status slc_dropout_check(const slc_dropout *dropout, const char *kernel)
{
    if (!dropout || (dropout->probability >= 0 && dropout->probability <= 65535.0f / 65536)) return SLUICE_OK;
    return slc_error(SLUICE_ERR_ARGUMENT, "kernel %s: drops with probability %g; give one from 0 to 65535/65536",
                     kernel, (double)dropout->probability);
}

sluice_status slc_dropout_apply(slc_stream *stream, const slc_dropout *dropout, sluice_dtype dtype, uint64_t count,
                                const void *x, void *y)
{
    return slc_residual_forward(stream, dtype, 1, count, x, NULL, dropout, NULL, NULL, y);
}
