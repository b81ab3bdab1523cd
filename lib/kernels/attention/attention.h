/* Multi-head self-attention, tiled with an online softmax (Dao et al., arXiv 2205.14135): nothing of size T x T is
 * stored. For each sequence b and head h
 *   score(i, j) = q(i) . k(j) / sqrt(head_size) + bias + relative-position bias,  -inf if query i does not see key j
 *   out(i) = sum over j of dropout(softmax over j (score(i, j))) v(j)
 * It computes in fp32 and rounds once, when it stores. Bits are equal on every instruction set and for every thread
 * count, except those of drelative, which are repeatable for a fixed thread count. A query that sees no key gives 0
 * and passes no gradient on. NaN gives NaN in the rows that it reaches; a NaN in v may also reach rows that do not
 * see this key. */
#ifndef SLC_KERNEL_ATTENTION_H
#define SLC_KERNEL_ATTENTION_H

#include "lib/kernels/dropout/dropout.h"
#include "lib/kernels/kernel.h"

#include <sluice/dtype.h>
#include <stdbool.h>

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

/* Enough for forward and for backward. */
uint64_t slc_attention_workspace_bytes(const sluice_stream *stream, const slc_attention_shape *shape);

/* logsumexp, [batch][heads][tokens], is kept for backward; it is +inf for a query that sees no key. workspace is
 * 64-byte aligned; nothing is kept there. out may not overlap q, k, v. Errors: ARGUMENT (shape, probability),
 * UNSUPPORTED (device). */
sluice_status slc_attention_forward(sluice_stream *stream, const slc_attention_shape *shape, const void *q,
                                    const void *k, const void *v, void *out, float *logsumexp, void *workspace);
/* Stores dq, dk and dv (in the shape's dtype; they may not overlap what is read). Adds to drelative, or stores it if
 * `fresh`; it is laid out like `relative` but has type `gradient`; NULL: not wanted. Errors: as forward's. */
sluice_status slc_attention_backward(sluice_stream *stream, const slc_attention_shape *shape, const void *q,
                                     const void *k, const void *v, const void *out, const float *logsumexp,
                                     const void *dout, void *dq, void *dk, void *dv, sluice_dtype gradient,
                                     void *drelative, int fresh, void *workspace);

/* Keys and values that one sequence has so far, in fp32 and in the order in which the kernel reads them, so that
 * further tokens cost no more than their own part of the work. The memory is the caller's, slc_attention_cache_bytes of
 * it, 64-byte aligned; it need not be cleared. Host only. */
typedef struct {
    void *memory;
    uint64_t room, tokens; /* tokens that it has room for; tokens that are there */
} slc_attention_cache;
uint64_t slc_attention_cache_bytes(uint64_t heads, uint64_t head_size, uint64_t room);
uint64_t slc_attention_extend_workspace_bytes(const sluice_stream *stream, const slc_attention_shape *shape);
/* Appends the keys and values of shape->tokens further tokens to the cache, at cache->tokens, and answers their
 * queries, each of which sees the tokens up to its own. `out` has the bits of these rows in slc_attention_forward over
 * the whole sequence. The shape is causal, of one sequence, without mask, biases and dropout. Errors: ARGUMENT (another
 * shape; no room), UNSUPPORTED (device). */
sluice_status slc_attention_extend(sluice_stream *stream, const slc_attention_shape *shape, const void *q,
                                   const void *k, const void *v, const slc_attention_cache *cache, void *out,
                                   void *workspace);

#endif
