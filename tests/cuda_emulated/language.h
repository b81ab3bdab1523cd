/* The kernels of language.cu, for emulated_test.c. All pointers are of the device or pinned. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <cuda_runtime_api.h>

#if defined(__cplusplus)
extern "C" {
#endif

enum { LANGUAGE_RESULTS = 14 }; /* that a thread of language_warp_operations writes */

/* out[block][result][thread] */
cudaError_t language_warp_operations(cudaStream_t stream, unsigned blocks, unsigned threads, unsigned *out);
/* c = a b, 16 x 16 each; bf16, or fp16 if `halves`. */
cudaError_t language_multiply(cudaStream_t stream, const uint16_t *a, const uint16_t *b, float *c, bool halves);
/* words: 4 that the caller has set; out: 1 + blocks. */
cudaError_t language_add_blocks(cudaStream_t stream, unsigned blocks, unsigned threads, unsigned *words, float *out);
cudaError_t language_read_fresh(cudaStream_t stream, const float *fresh, unsigned *out);
cudaError_t language_scale(cudaStream_t stream, unsigned blocks, unsigned threads, unsigned count, float factor,
                           float *x);

#if defined(__cplusplus)
}
#endif
