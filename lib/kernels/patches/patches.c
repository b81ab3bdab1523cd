/* Forward is cut between threads by rows, backward by channels, so that one thread computes each sum. */
#include "lib/kernels/patches/patches.h"

#include "lib/base/status.h"
#include "lib/kernels/dispatch.h"

enum { GRAIN_ELEMENTS = 16384, GRAIN_CHANNELS = 64 };

static void patches_unfold_host(sluice_stream *stream, const slc_patches_unfold_args *args)
{
    const slc_patch_shape *s = &args->shape;
    const uint64_t strip = s->image_channels * s->patch * s->width;
    slc_host_run(stream, s->batch * (s->height / s->patch), 1 + GRAIN_ELEMENTS / (strip + 1), 1,
                 SLC_ISA_PICK(slc_patches_unfold_range), args);
}

sluice_status slc_patches_unfold(sluice_stream *stream, const slc_patches_unfold_args *args)
{
    const slc_patch_shape *s = &args->shape;
    if (!s->patch || s->height % s->patch || s->width % s->patch)
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "kernel patches_unfold: images of %llu x %llu do not divide into patches "
                         "of %llu x %llu",
                         (unsigned long long)s->height, (unsigned long long)s->width, (unsigned long long)s->patch,
                         (unsigned long long)s->patch);
    return SLC_DEVICE_RUN(stream, patches_unfold, args);
}

static sluice_status check_mask(const char *kernel, const uint8_t *masked, const void *mask_token)
{
    if (!masked == !mask_token) return SLUICE_OK;
    return slc_error(SLUICE_ERR_ARGUMENT, "kernel %s: a mask and a mask token are given together or not at all",
                     kernel);
}

static void patch_embedding_forward_host(sluice_stream *stream, const slc_patch_embedding_forward_args *args)
{
    slc_host_run(stream, args->batch * (1 + args->patches), 1 + GRAIN_ELEMENTS / args->channels, 1,
                 SLC_ISA_PICK(slc_patch_embedding_forward_range), args);
}

sluice_status slc_patch_embedding_forward(sluice_stream *stream, const slc_patch_embedding_forward_args *args)
{
    sluice_status status = check_mask("patch_embedding_forward", args->masked, args->mask_token);
    return status || !args->channels ? status : SLC_DEVICE_RUN(stream, patch_embedding_forward, args);
}

static void patch_embedding_backward_host(sluice_stream *stream, const slc_patch_embedding_backward_args *args)
{
    slc_host_run(stream, args->channels, GRAIN_CHANNELS, 16, SLC_ISA_PICK(slc_patch_embedding_backward_range), args);
}

sluice_status slc_patch_embedding_backward(sluice_stream *stream, const slc_patch_embedding_backward_args *args)
{
    sluice_status status = check_mask("patch_embedding_backward", args->masked, args->dmask_token);
    return status ? status : SLC_DEVICE_RUN(stream, patch_embedding_backward, args);
}
