/* Multi-head self-attention, tiled with an online softmax (Dao et al., arXiv 2205.14135); nothing of size T x T
 * is stored. qkv: [batch][tokens][3][heads][head_size], as GPT-2's fused projection gives it; out:
 * [batch][tokens][heads] [head_size]. softmax(q k^T / sqrt(head_size)) v, position t sees positions <= t when `causal`.
 * logsumexp: [batch][heads][tokens], kept for backward. */
#ifndef SLC_KERNEL_ATTENTION_H
#define SLC_KERNEL_ATTENTION_H

#include "lib/kernels/kernel.h"

#include <stdbool.h>

typedef struct {
    uint64_t batch, tokens, heads, head_size;
    bool causal;
} slc_attention_shape;

uint64_t slc_attention_workspace_bytes(const slc_stream *stream, const slc_attention_shape *shape); /* of both */

sluice_status slc_attention_forward(slc_stream *stream, const slc_attention_shape *shape, const float *qkv, float *out,
                                    float *logsumexp, void *workspace);
/* Stores dqkv (which may not be qkv). */
sluice_status slc_attention_backward(slc_stream *stream, const slc_attention_shape *shape, const float *qkv,
                                     const float *out, const float *logsumexp, const float *dout, float *dqkv,
                                     void *workspace);

#endif
