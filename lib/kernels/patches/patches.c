/* Forward is cut between threads by rows, backward by channels, so that one thread computes each sum. */
#include "lib/kernels/patches/patches.h"

#include "lib/base/status.h"
#include "lib/device/cuda.h"
#include "lib/kernels/host.h"
#include "lib/kernels/patches/patches_cpu.h"
#include "lib/kernels/patches/patches_cuda.h"

enum { GRAIN_ELEMENTS = 16384, GRAIN_CHANNELS = 64 };

/* Says whether results are stored past the cache; their rows are whole lanes then. */
static bool streams(sluice_dtype dtype, const void *out, uint64_t elements, uint64_t row)
{
    return row % 16 == 0 && slc_host_streams(out, elements * sluice_dtype_bytes(dtype));
}

sluice_status slc_patches_unfold(sluice_stream *stream, sluice_dtype dtype, const slc_patch_shape *shape,
                                 const float *pixels, void *columns)
{
    const slc_patch_shape *s = shape;
    if (!s->patch || s->height % s->patch || s->width % s->patch)
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "kernel patches_unfold: images of %llu x %llu do not divide into patches "
                         "of %llu x %llu",
                         (unsigned long long)s->height, (unsigned long long)s->width, (unsigned long long)s->patch,
                         (unsigned long long)s->patch);
    if (SLC_ON_CUDA(stream)) return slc_patches_unfold_cuda(stream, dtype, shape, pixels, columns);
    sluice_status status = slc_host_check(stream, "patches_unfold");
    if (status) return status;
    uint64_t strip = s->image_channels * s->patch * s->width, elements = s->batch * (s->height / s->patch) * strip;
    slc_patches_unfold_args args = {.dtype = dtype,
                                    .shape = *s,
                                    .pixels = pixels,
                                    .columns = columns,
                                    .stream = streams(dtype, columns, elements, s->patch)};
    slc_host_run(stream, s->batch * (s->height / s->patch), 1 + GRAIN_ELEMENTS / (strip + 1), 1,
                 SLC_ISA_PICK(slc_patches_unfold_range), &args);
    return SLUICE_OK;
}

static sluice_status check_mask(const char *kernel, const uint8_t *masked, const void *mask_token)
{
    if (!masked == !mask_token) return SLUICE_OK;
    return slc_error(SLUICE_ERR_ARGUMENT, "kernel %s: a mask and a mask token are given together or not at all",
                     kernel);
}

sluice_status slc_patch_embedding_forward(sluice_stream *stream, sluice_dtype dtype, uint64_t batch, uint64_t patches,
                                          uint64_t channels, const void *x, const void *cls, const void *mask_token,
                                          const uint8_t *masked, const void *position, void *out)
{
    sluice_status status = check_mask("patch_embedding_forward", masked, mask_token);
    if (status || !channels) return status;
    if (SLC_ON_CUDA(stream))
        return slc_patch_embedding_forward_cuda(stream, dtype, batch, patches, channels, x, cls, mask_token, masked,
                                                position, out);
    status = slc_host_check(stream, "patch_embedding_forward");
    if (status) return status;
    slc_patch_embedding_forward_args args = {.dtype = dtype,
                                             .patches = patches,
                                             .channels = channels,
                                             .x = x,
                                             .cls = cls,
                                             .mask_token = mask_token,
                                             .masked = masked,
                                             .position = position,
                                             .out = out,
                                             .stream = streams(dtype, out, batch * (1 + patches) * channels, channels)};
    slc_host_run(stream, batch * (1 + patches), 1 + GRAIN_ELEMENTS / channels, 1,
                 SLC_ISA_PICK(slc_patch_embedding_forward_range), &args);
    return SLUICE_OK;
}

sluice_status slc_patch_embedding_backward(sluice_stream *stream, sluice_dtype dtype, sluice_dtype gradient,
                                           uint64_t batch, uint64_t patches, uint64_t channels, const void *dout,
                                           const uint8_t *masked, void *dx, void *dcls, void *dmask_token,
                                           void *dposition, int fresh)
{
    sluice_status status = check_mask("patch_embedding_backward", masked, dmask_token);
    if (status) return status;
    if (SLC_ON_CUDA(stream))
        return slc_patch_embedding_backward_cuda(stream, dtype, gradient, batch, patches, channels, dout, masked, dx,
                                                 dcls, dmask_token, dposition, fresh);
    status = slc_host_check(stream, "patch_embedding_backward");
    if (status) return status;
    slc_patch_embedding_backward_args args = {.dtype = dtype,
                                              .gradient = gradient,
                                              .batch = batch,
                                              .patches = patches,
                                              .channels = channels,
                                              .dout = dout,
                                              .masked = masked,
                                              .dx = dx,
                                              .dcls = dcls,
                                              .dmask_token = dmask_token,
                                              .dposition = dposition,
                                              .fresh = fresh,
                                              .stream = streams(dtype, dx, batch * patches * channels, channels)};
    slc_host_run(stream, channels, GRAIN_CHANNELS, 16, SLC_ISA_PICK(slc_patch_embedding_backward_range), &args);
    return SLUICE_OK;
}
