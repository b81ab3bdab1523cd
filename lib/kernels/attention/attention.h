/* Multi-head self-attention, tiled with an online softmax (Dao et al., arXiv 2205.14135): nothing of size T x T is
 * stored. For each sequence b and head h
 *   score(i, j) = q(i) . k(j) / sqrt(head_size) + bias + relative-position bias,  -inf if query i does not see key j
 *   out(i) = sum over j of dropout(softmax over j (score(i, j))) v(j)
 * It computes in fp32 and rounds once, when it stores. Bits are equal on every instruction set and for every thread
 * count, except those of drelative, which are repeatable for a fixed thread count. A query that sees no key gives 0
 * and passes no gradient on. NaN gives NaN in the rows that it reaches; a NaN in v may also reach rows that do not
 * see this key. */
#pragma once

#include "lib/kernels/dropout/dropout.h"
#include "lib/kernels/isa.h"
#include "lib/kernels/kernel.h"

typedef struct {
    sluice_dtype dtype;
    uint64_t batch, tokens, heads, head_size;
    /* Elements between tokens of q, k, v, dq, dk and dv (row_stride), and of out and dout (out_stride). 0:
     * heads * head_size. Element (b, t, h, d) lies at (b * tokens + t) * stride + h * head_size + d, so q, k and v may
     * be thirds of one array [batch * tokens][3 * heads * head_size]. */
    uint64_t row_stride, out_stride;
    bool causal;             /* query i sees the keys j <= i */
    const uint8_t *key_mask; /* [batch][tokens], 0: no query of this sequence sees this key; NULL: all do */
    /* Added to the score of (b, h, i, j): bias[b * bias_batch + h * bias_head + i * tokens + j]. -inf hides a key. It
     * gets no gradient. NULL: none. */
    const float *bias;
    uint64_t bias_batch, bias_head;
    /* The relative-position bias of BEiT (Bao et al., arXiv 2106.08254; BeitRelativePositionBias in transformers), in
     * dtype: [(2 * window_h - 1) * (2 * window_w - 1) + 3][heads]. Token 0 is the class token, token 1 + y * window_w +
     * x is the patch at (y, x), and tokens == 1 + window_h * window_w. Query patch i and key patch j use the row
     * (y_i - y_j + window_h - 1) * (2 * window_w - 1) + x_i - x_j + window_w - 1; the last three rows are class to
     * patch, patch to class, class to class (query to key). NULL: none. */
    const void *relative;
    uint64_t window_h, window_w;
    /* Dropout of the probabilities: (b, h, i, j) is element ((b * heads + h) * tokens + i) * tokens + j. NULL: none.
     * Backward takes the same rule as forward. */
    const slc_dropout *dropout;
} slc_attention_shape;

/* Keys and values that one sequence has so far, in fp32 and in the order in which the kernel reads them, so that
 * further tokens cost no more than their own part of the work. The memory is the caller's, slc_attention_cache_bytes of
 * it, 64-byte aligned; it need not be cleared. Host only. */
typedef struct {
    void *memory;
    uint64_t room, tokens; /* tokens that it has room for; tokens that are there */
} slc_attention_cache;
uint64_t slc_attention_cache_bytes(uint64_t heads, uint64_t head_size, uint64_t room);

typedef struct {
    slc_attention_shape shape;
    const void *q, *k, *v;
    void *out;       /* may not overlap q, k, v */
    void *logsumexp; /* [batch][heads][tokens] in fp32, kept for backward; +inf for a query that sees no key */
    slc_attention_cache cache; /* of slc_attention_extend alone, which keeps no logsumexp */
    void *workspace;           /* 64-byte aligned; nothing is kept there */
} slc_attention_forward_args;

/* Errors: ARGUMENT (shape, probability), UNSUPPORTED (heads of more than SLC_ATTENTION_CUDA_DEPTH on a GPU). */
enum { SLC_ATTENTION_CUDA_DEPTH = 128 };
sluice_status slc_attention_forward(sluice_stream *stream, const slc_attention_forward_args *args);

/* Appends the keys and values of shape.tokens further tokens to the cache, at cache.tokens, and answers their queries,
 * each of which sees the tokens up to its own. `out` has the bits of these rows in slc_attention_forward over the whole
 * sequence. The shape is causal, of one sequence, without mask, biases and dropout. Errors: ARGUMENT (another shape; no
 * room), UNSUPPORTED (device). */
sluice_status slc_attention_extend(sluice_stream *stream, const slc_attention_forward_args *args);
uint64_t slc_attention_extend_workspace_bytes(const sluice_stream *stream, const slc_attention_shape *shape);

typedef struct {
    slc_attention_shape shape;
    const void *q, *k, *v, *out, *dout;
    const void *logsumexp; /* fp32, from forward */
    void *dq, *dk, *dv;    /* stored, in the shape's dtype; they may not overlap what is read */
    sluice_dtype gradient;
    void
        *drelative; /* added to, or stored if `fresh`; laid out like `relative`, of type `gradient`. NULL: not wanted */
    bool fresh;
    void *workspace; /* as forward's */
} slc_attention_backward_args;

/* Errors: as forward's. */
sluice_status slc_attention_backward(sluice_stream *stream, const slc_attention_backward_args *args);

/* Returns bytes that are enough for forward and for backward. */
uint64_t slc_attention_workspace_bytes(const sluice_stream *stream, const slc_attention_shape *shape);

/* ---- Forms ---- */

/* The references take arrays as [batch][tokens][heads][head_size], whatever the strides are. The shape's `relative` is
 * of double too, but not its bias, and forward's workspace has [tokens] double. */
void slc_attention_forward_ref(const slc_attention_forward_args *args);
void slc_attention_backward_ref(const slc_attention_backward_args *args);
/* Returns the row of BEiT's table for this query and key. */
uint64_t slc_attention_relative_row(const slc_attention_shape *shape, uint64_t query, uint64_t key);

/* The fast forms get strides that are never 0. An item is one head of one sequence. */
SLC_ISA_DECLARE(slc_attention_forward_range);  /* over ranges of items */
SLC_ISA_DECLARE(slc_attention_backward_range); /* over ranges of items; leaves drelative's sums in the workspace */
SLC_DEVICE_DECLARE(slc_attention_forward);     /* needs no workspace */
SLC_DEVICE_DECLARE(slc_attention_backward);
SLC_DEVICE_DECLARE(slc_attention_workspace_bytes);
