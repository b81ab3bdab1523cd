/* The fast patches, compiled once for each instruction set. */
#ifndef SLC_KERNEL_PATCHES_CPU_H
#define SLC_KERNEL_PATCHES_CPU_H

#include "lib/kernels/isa.h"
#include "lib/kernels/patches/patches.h"

#include <stdbool.h>

typedef struct {
    sluice_dtype dtype;
    slc_patch_shape shape;
    const float *pixels;
    void *columns;
    bool stream; /* result of slc_host_streams */
} slc_patches_unfold_args;

typedef struct {
    sluice_dtype dtype;
    uint64_t patches, channels;
    const void *x, *cls, *mask_token, *position;
    const uint8_t *masked;
    void *out;
    bool stream;
} slc_patch_embedding_forward_args;

typedef struct {
    sluice_dtype dtype, gradient;
    uint64_t batch, patches, channels;
    const void *dout;
    const uint8_t *masked;
    void *dx, *dcls, *dmask_token, *dposition;
    bool fresh, stream;
} slc_patch_embedding_backward_args;

SLC_ISA_DECLARE(slc_patches_unfold_range);           /* over ranges of rows of patches, over the batch */
SLC_ISA_DECLARE(slc_patch_embedding_forward_range);  /* over ranges of rows of out */
SLC_ISA_DECLARE(slc_patch_embedding_backward_range); /* over ranges of channels */

#endif
