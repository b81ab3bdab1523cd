/* Hands the rows to the GPU, or cuts them between the host's threads. */
#include "lib/kernels/cross_entropy/cross_entropy.h"

#include "lib/device/cuda.h"
#include "lib/kernels/cross_entropy/cross_entropy_cpu.h"
#include "lib/kernels/cross_entropy/cross_entropy_cuda.h"
#include "lib/kernels/host.h"

sluice_status slc_cross_entropy(sluice_stream *stream, uint64_t rows, uint64_t classes, uint64_t stride, float *logits,
                                sluice_dtype gradient, const int32_t *targets, float smoothing, float gradient_scale,
                                float *losses)
{
    if (SLC_ON_CUDA(stream))
        return slc_cross_entropy_cuda(stream, rows, classes, stride, logits, gradient, targets, smoothing,
                                      gradient_scale, losses);
    sluice_status status = slc_host_check(stream, "cross_entropy");
    if (status) return status;
    slc_cross_entropy_args args = {.classes = classes,
                                   .stride = stride,
                                   .logits = logits,
                                   .gradient = gradient,
                                   .targets = targets,
                                   .smoothing = smoothing,
                                   .gradient_scale = gradient_scale,
                                   .losses = losses};
    slc_host_run(stream, rows, 1, 1, SLC_ISA_PICK(slc_cross_entropy_range), &args);
    return SLUICE_OK;
}
