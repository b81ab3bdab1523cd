/* The plain loops of patches.h in float64. Backward adds to its gradients. */
#ifndef SLC_KERNEL_PATCHES_REF_H
#define SLC_KERNEL_PATCHES_REF_H

#include "lib/kernels/patches/patches.h"

void slc_patches_unfold_ref(const slc_patch_shape *shape, const double *pixels, double *columns);
void slc_patch_embedding_forward_ref(uint64_t batch, uint64_t patches, uint64_t channels, const double *x,
                                     const double *cls, const double *mask_token, const uint8_t *masked,
                                     const double *position, double *out);
void slc_patch_embedding_backward_ref(uint64_t batch, uint64_t patches, uint64_t channels, const double *dout,
                                      const uint8_t *masked, double *dx, double *dcls, double *dmask_token,
                                      double *dposition);

#endif
