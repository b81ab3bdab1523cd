/* Checks the targets, because they index memory, and cuts the rows between threads. */
#include "lib/kernels/cross_entropy/cross_entropy.h"

#include "lib/base/status.h"
#include "lib/device/cuda.h"
#include "lib/kernels/cross_entropy/cross_entropy_cpu.h"
#include "lib/kernels/cross_entropy/cross_entropy_cuda.h"
#include "lib/kernels/host.h"

sluice_status slc_cross_entropy(sluice_stream *stream, uint64_t rows, uint64_t classes, float *logits,
                                sluice_dtype gradient, const int32_t *targets, float gradient_scale, float *losses)
{
    if (SLC_ON_CUDA(stream))
        return slc_cross_entropy_cuda(stream, rows, classes, logits, gradient, targets, gradient_scale, losses);
    sluice_status status = slc_host_check(stream, "cross_entropy");
    if (status) return status;
    for (uint64_t row = 0; row < rows; row++)
        if (targets[row] < -1 || (targets[row] >= 0 && (uint64_t)targets[row] >= classes))
            return slc_error(SLUICE_ERR_ARGUMENT, "kernel cross_entropy: target %d of row %llu; there are %llu classes",
                             targets[row], (unsigned long long)row, (unsigned long long)classes);
    slc_cross_entropy_args args = {.classes = classes,
                                   .logits = logits,
                                   .gradient = gradient,
                                   .targets = targets,
                                   .gradient_scale = gradient_scale,
                                   .losses = losses};
    slc_host_run(stream, rows, 1, 1, SLC_ISA_PICK(slc_cross_entropy_range), &args);
    return SLUICE_OK;
}
