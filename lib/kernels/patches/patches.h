/* Images as sequences: patches as rows for a GEMM, and the rows that a vision transformer adds to the embedded
 * patches. */
#pragma once

#include "lib/kernels/isa.h"
#include "lib/kernels/kernel.h"

/* height and width are multiples of patch: there are (height / patch) * (width / patch) patches, row by row. */
typedef struct {
    uint64_t batch, image_channels, height, width, patch;
} slc_patch_shape;

typedef struct {
    sluice_dtype dtype; /* of columns */
    slc_patch_shape shape;
    const void *pixels; /* [batch][image_channels][height][width] in fp32 */
    /* [batch][patches][image_channels * patch * patch], in the order of a convolution's weight
     * [out][image_channels][patch][patch], so that a convolution whose stride is its kernel's size is one GEMM. */
    void *columns;
} slc_patches_unfold_args;

/* Errors: ARGUMENT (height or width is no multiple of patch). */
sluice_status slc_patches_unfold(sluice_stream *stream, const slc_patches_unfold_args *args);

/* out [batch][1 + patches][channels]: row 0 is cls + position[0], row 1 + i is x[b][i] + position[1 + i], with
 * mask_token in place of x if masked[b][i] is not 0 (BEiT's bool_masked_pos). */
typedef struct {
    sluice_dtype dtype;
    uint64_t batch, patches, channels;
    const void *x;          /* [batch][patches][channels] */
    const void *cls;        /* [channels] */
    const uint8_t *masked;  /* NULL: none is masked */
    const void *mask_token; /* [channels]; NULL exactly if masked is */
    const void *position;   /* [1 + patches][channels]; NULL: none */
    void *out;
} slc_patch_embedding_forward_args;

/* Errors: ARGUMENT (masked without mask_token, or the reverse). */
sluice_status slc_patch_embedding_forward(sluice_stream *stream, const slc_patch_embedding_forward_args *args);

/* The gradients of parameters are sums over the batch (dmask_token: over the masked places, place by place), added, or
 * stored if `fresh`. They are summed in fp32 and rounded once, the same to the bit for any thread count. */
typedef struct {
    sluice_dtype dtype, gradient;
    uint64_t batch, patches, channels;
    const void *dout;
    const uint8_t *masked; /* as in forward */
    void *dx;              /* dout without its first rows, and 0 for masked patches */
    void *dcls;
    void *dmask_token; /* NULL exactly if masked is */
    void *dposition;   /* NULL: not wanted */
    bool fresh;
} slc_patch_embedding_backward_args;

/* Errors: ARGUMENT (masked without dmask_token, or the reverse). */
sluice_status slc_patch_embedding_backward(sluice_stream *stream, const slc_patch_embedding_backward_args *args);

/* ---- Forms ---- */

void slc_patches_unfold_ref(const slc_patches_unfold_args *args);
void slc_patch_embedding_forward_ref(const slc_patch_embedding_forward_args *args);
void slc_patch_embedding_backward_ref(const slc_patch_embedding_backward_args *args);

SLC_ISA_DECLARE(slc_patches_unfold_range);           /* over ranges of rows of patches, over the batch */
SLC_ISA_DECLARE(slc_patch_embedding_forward_range);  /* over ranges of rows of out */
SLC_ISA_DECLARE(slc_patch_embedding_backward_range); /* over ranges of channels */
SLC_DEVICE_DECLARE(slc_patches_unfold);
SLC_DEVICE_DECLARE(slc_patch_embedding_forward);
SLC_DEVICE_DECLARE(slc_patch_embedding_backward);
