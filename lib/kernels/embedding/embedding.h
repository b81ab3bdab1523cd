/* Token plus position embedding: out[b][t] = token_table[tokens[b][t]] + position_table[t]. */
#ifndef SLC_KERNEL_EMBEDDING_H
#define SLC_KERNEL_EMBEDDING_H

#include "lib/kernels/kernel.h"

/* tokens: batch x length, each < vocabulary (checked by the caller). */
sluice_status slc_embedding_forward(slc_stream *stream, uint64_t batch, uint64_t length, uint64_t channels,
                                    const int32_t *tokens, const float *token_table, const float *position_table,
                                    float *out);

/* Adds to dtoken_table (vocabulary x channels) and dposition_table. Deterministic for any thread count: rows with equal
 * tokens are added in the order of their positions. */
sluice_status slc_embedding_backward(slc_stream *stream, uint64_t batch, uint64_t length, uint64_t channels,
                                     const int32_t *tokens, const float *dout, float *dtoken_table,
                                     float *dposition_table);

#endif
