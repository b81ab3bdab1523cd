/* Keeps a codebook of visual tokens as JSON among what lies beside weights (beside.h), and writes it to a file. Private
 * to bench/train/data. One thread. */
#pragma once

#include <jansson.h>
#include <sluice/status.h>
#include <stdint.h>

/* Adds the codebook of a BEiT's visual tokens: values are codes x elements of a patch. Error: MEMORY. */
sluice_status slc_beside_add_codebook(json_t *beside, uint32_t codes, uint32_t elements, const float *values);

/* Writes a codebook that slc_beside_add_codebook made as safetensors with the tensor "codebook". Errors: FORMAT (it is
 * none), PATH, IO, MEMORY. */
sluice_status slc_beside_codebook_write(const json_t *book, const char *path);
