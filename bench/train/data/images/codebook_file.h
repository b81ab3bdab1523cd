/* Codebooks of visual tokens outside of a run: in safetensors as the tensor "codebook", codes x values of a patch, and
 * among what lies beside weights. One thread. */
#pragma once

#include "bench/train/data/images/codebook.h"
#include "lib/weights/tensors.h"

#include <jansson.h>

/* Adds the codebook to what lies beside weights (beside.h). Errors: MEMORY. */
sluice_status slc_codebook_add(json_t *beside, const slc_codebook *book);

/* Takes the tensor "codebook", of at most `codes` codes, for images of this shape and patches of this side; the caller
 * frees it. Errors: FORMAT names the tensor's shape, NON_FINITE, IO, MEMORY. */
sluice_status slc_codebook_read(const slc_tensors *tensors, const slc_tensor *tensor, const slc_image_shape *shape,
                                uint32_t patch, uint32_t codes, slc_codebook *out);
