/* Embedding of tokens, with the rows that models add to it: out[b][t] = token[tokens[b][t]] + position[t] +
 * type[types[b][t]], added in that order in fp32 and rounded once. */
#pragma once

#include "lib/kernels/isa.h"
#include "lib/kernels/kernel.h"

/* Tables with rows of `channels`: one row for each token of the vocabulary, each position, each token type. position,
 * type: may be NULL: none. */
typedef struct {
    const void *token, *position, *type;
} slc_embedding_tables;

/* Any table may be NULL: its gradient is not wanted. With `padded`, the row of token `padding` gets nothing
 * (torch.nn.Embedding's padding_idx). token_order, type_order: the places in the order that slc_embedding_order makes
 * of tokens and of types, which the device reads. A GPU needs them if it adds to the token table, and to the type
 * table with types; the host sorts places itself if they are NULL. */
typedef struct {
    void *token, *position, *type;
    bool padded;
    int32_t padding;
    const uint32_t *token_order, *type_order;
} slc_embedding_gradients;

typedef struct {
    sluice_dtype dtype; /* of the tables and out */
    uint64_t batch, length, channels;
    /* batch x length, read by the device, each not negative and below the number of rows of its table: the caller
     * checks that. types NULL: type 0 everywhere. */
    const int32_t *tokens, *types;
    slc_embedding_tables tables;
    void *out; /* [batch][length][channels]; overlaps no table */
} slc_embedding_forward_args;

sluice_status slc_embedding_forward(sluice_stream *stream, const slc_embedding_forward_args *args);

/* Fills order[0..places-1] with the numbers of the places, those with the smallest key first, and those with equal keys
 * in order. Works on the host, at once, in O(places). keys are not negative; scratch has `places` elements too; places
 * is below 2^32. */
void slc_embedding_order(uint64_t places, const int32_t *keys, uint32_t *order, uint32_t *scratch);

uint64_t slc_embedding_backward_workspace_bytes(const sluice_stream *stream, uint64_t batch, uint64_t length,
                                                uint64_t channels);

/* Backward adds to the rows of `gradients`: the rows of dout that belong to one are summed in fp32 from zero, in the
 * order of their places (b, t); this sum is added to the row once, and rounded once. So the result is the same to the
 * bit for any thread count, and on a GPU. */
typedef struct {
    sluice_dtype dtype, gradient;
    uint64_t batch, length, channels;
    const int32_t *tokens, *types; /* as in forward */
    const void *dout;
    slc_embedding_gradients gradients;
    void *workspace; /* slc_embedding_backward_workspace_bytes, 4-byte aligned */
} slc_embedding_backward_args;

/* Errors: UNSUPPORTED (2^32 places or more), ARGUMENT (an order that a GPU needs is missing). */
sluice_status slc_embedding_backward(sluice_stream *stream, const slc_embedding_backward_args *args);

/* ---- Forms ---- */

void slc_embedding_forward_ref(const slc_embedding_forward_args *args);
void slc_embedding_backward_ref(const slc_embedding_backward_args *args);

SLC_ISA_DECLARE(slc_embedding_forward_range); /* over ranges of rows */
SLC_DEVICE_DECLARE(slc_embedding_forward);    /* with at least one place and channel */
SLC_DEVICE_DECLARE(slc_embedding_backward);   /* likewise */

/* Adds rows of dout to rows of one table. */
typedef struct {
    slc_embedding_backward_args all;
    const int32_t *keys;   /* the table's row for each row of dout; NULL: 0 for all */
    const uint32_t *order; /* rows of dout sorted by key; unused if keys is NULL: rows are taken in order */
    int32_t padding;       /* the key whose rows are skipped; -1: none */
    void *table;
} slc_embedding_table_args;

SLC_ISA_DECLARE(slc_embedding_keys_range);     /* over ranges of channels; keys give the table's rows */
SLC_ISA_DECLARE(slc_embedding_position_range); /* over ranges of channels; row t of the table gets rows t, t + length,
                                                  ... of dout */
