/* Copies tensors into and out of a flat array that they share and that is exchanged as one (compress.h). */
#pragma once

#include "lib/kernels/compress/compress.h"

/* out[i] = factor * momentum + rest * (gradient_factor * gradient) for `count` elements; `out` may lie anywhere. */
sluice_status slc_flat_write(sluice_stream *stream, uint64_t count, const slc_compress_input *input, float *out);

/* A tensor of those that are written together. */
typedef struct {
    uint64_t count;
    slc_compress_input input;
    float *out;
} slc_flat_tensor;

/* Writes many tensors, on a GPU by one launch for many. Their gradients have one type, and so have their momenta. */
sluice_status slc_flat_write_many(sluice_stream *stream, uint32_t count, const slc_flat_tensor *tensors);

/* out[i] = the result of an exchange for element first + i of the array; here `first` need only be a multiple of 8, and
 * any count goes. Non-finite scales pass through unchanged. words: NULL, or they may say that nothing is to change. */
sluice_status slc_flat_read(sluice_stream *stream, const slc_compress_results *results, const sluice_step_words *words,
                            float *out);
