/* Into and out of a flat array that several tensors share and that is exchanged as one (compress.h). */
#ifndef SLC_KERNEL_FLAT_H
#define SLC_KERNEL_FLAT_H

#include "lib/kernels/compress/compress.h"

/* out[i] = factor * momentum + rest * (gradient_factor * gradient), `count` elements; `out` may lie anywhere. */
sluice_status slc_flat_write(slc_stream *stream, uint64_t count, const slc_compress_input *input, float *out);

/* out[i] = what an exchange gave for element first + i, a multiple of 8, of the array. Non-finite scales as they are.
 */
sluice_status slc_flat_read(slc_stream *stream, const slc_compress_shape *shape, const void *results, uint64_t stride,
                            uint64_t first, uint64_t count, float *out);

#endif
