/* Visual tokens: patches of images, each named by the nearest of a few typical ones (k-means, Lloyd's iteration; for
 * BEiT's pre-training, whose tokens come from a trained tokenizer in the paper). A function of the images alone: every
 * rank makes the same one. */
#pragma once

#include "lib/data/images/images.h"

enum { SLC_CODES_MAX = 256 }; /* more codes take long to find and are rare in the samples */

typedef struct {
    uint32_t channels, side, patch; /* of the images, in pixels; patch divides side */
    uint32_t codes;                 /* at most SLC_CODES_MAX */
    uint32_t elements;              /* of a patch: channels x patch x patch */
    float *centres;                 /* elements x codes */
    float *scratch;                 /* elements + codes */
} slc_codebook;

/* Makes a codebook from the images of a range; the caller frees it. Errors: those of reading images; MEMORY. */
sluice_status slc_codebook_make(const slc_images *images, const slc_image_shape *shape, slc_image_range range,
                                uint32_t patch, uint32_t codes, slc_codebook *out);
void slc_codebook_free(slc_codebook *book); /* a zeroed one is allowed */
uint64_t slc_codebook_bytes(const slc_codebook *book);

/* Returns the code of patch number `index`, counted row by row, of an image's pixels: channels x side x side. One
 * thread at a time. */
uint32_t slc_codebook_code(const slc_codebook *book, const float *pixels, uint32_t index);
