/* Embedding of tokens, with the rows that models add to it: out[b][t] = token[tokens[b][t]] + position[t] +
 * type[types[b][t]], added in that order in fp32 and rounded once. */
#ifndef SLC_KERNEL_EMBEDDING_H
#define SLC_KERNEL_EMBEDDING_H

#include "lib/kernels/kernel.h"

#include <sluice/dtype.h>

/* Tables with rows of `channels`: one row for each token of the vocabulary, each position, each token type. position,
 * type: may be NULL: none. */
typedef struct {
    const void *token, *position, *type;
} slc_embedding_tables;

/* Any table may be NULL: its gradient is not wanted. The row of token `*padding` gets nothing (torch.nn.Embedding's
 * padding_idx); padding NULL: every token's row gets its gradient. */
typedef struct {
    void *token, *position, *type;
    const int32_t *padding;
} slc_embedding_gradients;

/* tokens, types: batch x length, each not negative and below the number of rows of its table (the caller checks that);
 * the device reads them, and *padding too.
 * types NULL: type 0 everywhere. `dtype`: type of the tables and out. out overlaps no table. */
sluice_status slc_embedding_forward(sluice_stream *stream, sluice_dtype dtype, uint64_t batch, uint64_t length,
                                    uint64_t channels, const int32_t *tokens, const int32_t *types,
                                    const slc_embedding_tables *tables, void *out);

uint64_t slc_embedding_backward_workspace_bytes(const sluice_stream *stream, uint64_t batch, uint64_t length,
                                                uint64_t channels);

/* Adds to the rows of `gradients` (of type `gradient`): a row is read once, the rows of dout that belong to it are
 * added in fp32 in the order of their places (b, t), and the sum is rounded once. So the result is the same to the bit
 * for any thread count. workspace: 4-byte aligned. Errors: UNSUPPORTED (2^32 places or more). */
sluice_status slc_embedding_backward(sluice_stream *stream, sluice_dtype dtype, sluice_dtype gradient, uint64_t batch,
                                     uint64_t length, uint64_t channels, const int32_t *tokens, const int32_t *types,
                                     const void *dout, const slc_embedding_gradients *gradients, void *workspace);

#endif
