/* Images as sequences: patches as rows for a GEMM, and the rows that a vision transformer adds to the embedded
 * patches. */
#ifndef SLC_KERNEL_PATCHES_H
#define SLC_KERNEL_PATCHES_H

#include "lib/kernels/kernel.h"

#include <sluice/dtype.h>

/* height and width are multiples of patch: there are (height / patch) * (width / patch) patches, row by row. */
typedef struct {
    uint64_t batch, image_channels, height, width, patch;
} slc_patch_shape;

/* pixels: [batch][image_channels][height][width]. columns, in `dtype`:
 * [batch][patches][image_channels * patch * patch], in the order of a convolution's weight
 * [out][image_channels][patch][patch], so that a convolution whose stride is its kernel's size is one GEMM. Errors:
 * ARGUMENT (height or width is no multiple of patch). */
sluice_status slc_patches_unfold(slc_stream *stream, sluice_dtype dtype, const slc_patch_shape *shape,
                                 const float *pixels, void *columns);

/* out [batch][1 + patches][channels]: row 0 is cls + position[0], row 1 + i is x[b][i] + position[1 + i], with
 * mask_token in place of x if masked[b][i] is not 0 (BEiT's bool_masked_pos). position [1 + patches][channels] may be
 * NULL; masked and mask_token are either both NULL or neither. x: [batch][patches][channels]. All but masked have type
 * `dtype`. */
sluice_status slc_patch_embedding_forward(slc_stream *stream, sluice_dtype dtype, uint64_t batch, uint64_t patches,
                                          uint64_t channels, const void *x, const void *cls, const void *mask_token,
                                          const uint8_t *masked, const void *position, void *out);

/* dx [batch][patches][channels]: dout without its first rows, and 0 for masked patches. dcls, dmask_token (NULL
 * together with masked) and dposition (NULL: not wanted) have type `gradient`: they are sums over the batch
 * (dmask_token: over the masked places, place by place), added, or stored if `fresh` is not 0. They are summed in fp32
 * and rounded once, the same to the bit for any thread count. */
sluice_status slc_patch_embedding_backward(slc_stream *stream, sluice_dtype dtype, sluice_dtype gradient,
                                           uint64_t batch, uint64_t patches, uint64_t channels, const void *dout,
                                           const uint8_t *masked, void *dx, void *dcls, void *dmask_token,
                                           void *dposition, int fresh);

#endif
