/* One element at a time, addressed by its place in the arrays. patches_test.c covers this file. */
#include "lib/kernels/patches/patches.h"

void slc_patches_unfold_ref(const slc_patches_unfold_args *args)
{
    const slc_patch_shape s = args->shape;
    const double *pixels = args->pixels;
    double *columns = args->columns;
    const uint64_t across = s.width / s.patch, patches = s.height / s.patch * across;
    for (uint64_t b = 0; b < s.batch; b++)
        for (uint64_t c = 0; c < s.image_channels; c++)
            for (uint64_t y = 0; y < s.height; y++)
                for (uint64_t x = 0; x < s.width; x++) {
                    uint64_t patch = y / s.patch * across + x / s.patch;
                    uint64_t column = (c * s.patch + y % s.patch) * s.patch + x % s.patch;
                    columns[(b * patches + patch) * s.image_channels * s.patch * s.patch + column] =
                        pixels[((b * s.image_channels + c) * s.height + y) * s.width + x];
                }
}

void slc_patch_embedding_forward_ref(const slc_patch_embedding_forward_args *args)
{
    const uint64_t batch = args->batch, patches = args->patches, channels = args->channels;
    const double *x = args->x, *cls = args->cls, *mask_token = args->mask_token, *position = args->position;
    double *out = args->out;
    for (uint64_t b = 0; b < batch; b++)
        for (uint64_t place = 0; place <= patches; place++)
            for (uint64_t c = 0; c < channels; c++) {
                uint64_t patch = b * patches + place - 1;
                double value = !place                                ? cls[c]
                               : args->masked && args->masked[patch] ? mask_token[c]
                                                                     : x[patch * channels + c];
                if (position) value += position[place * channels + c];
                out[(b * (1 + patches) + place) * channels + c] = value;
            }
}

void slc_patch_embedding_backward_ref(const slc_patch_embedding_backward_args *args)
{
    const uint64_t batch = args->batch, patches = args->patches, channels = args->channels;
    const double *dout = args->dout;
    double *dx = args->dx, *dcls = args->dcls, *dmask_token = args->dmask_token, *dposition = args->dposition;
    for (uint64_t c = 0; args->fresh && c < channels; c++) {
        dcls[c] = 0;
        if (dmask_token) dmask_token[c] = 0;
        for (uint64_t place = 0; dposition && place <= patches; place++) dposition[place * channels + c] = 0;
    }
    for (uint64_t b = 0; b < batch; b++)
        for (uint64_t place = 0; place <= patches; place++)
            for (uint64_t c = 0; c < channels; c++) {
                uint64_t patch = b * patches + place - 1;
                double value = dout[(b * (1 + patches) + place) * channels + c];
                if (dposition) dposition[place * channels + c] += value;
                if (!place) {
                    dcls[c] += value;
                } else if (args->masked && args->masked[patch]) {
                    dmask_token[c] += value;
                    dx[patch * channels + c] = 0;
                } else {
                    dx[patch * channels + c] = value;
                }
            }
}
