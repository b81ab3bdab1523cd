/* The fast attention, compiled once for each instruction set. An item is one head of one sequence. */
#ifndef SLC_KERNEL_ATTENTION_CPU_H
#define SLC_KERNEL_ATTENTION_CPU_H

#include "lib/kernels/attention/attention.h"
#include "lib/kernels/isa.h"

/* Tiles. Multiples of 16; key tiles are multiples of query blocks. */
enum {
    ATTENTION_FORWARD_KEYS = 128,
    ATTENTION_FORWARD_QUERIES = 32,
    ATTENTION_BACKWARD_KEYS = 64,
    ATTENTION_BACKWARD_QUERIES = 64
};

typedef struct {
    slc_attention_shape shape;
    const float *qkv;
    float *out, *logsumexp;
    float *workspace;
    uint64_t workspace_floats; /* of one part */
} slc_attention_forward_args;

typedef struct {
    slc_attention_shape shape;
    const float *qkv, *out, *logsumexp, *dout;
    float *dqkv;
    float *workspace;
    uint64_t workspace_floats; /* of one part */
} slc_attention_backward_args;

uint64_t slc_attention_forward_floats(const slc_attention_shape *shape);
uint64_t slc_attention_backward_floats(const slc_attention_shape *shape);

SLC_ISA_DECLARE(slc_attention_forward_range);
SLC_ISA_DECLARE(slc_attention_backward_range);

static inline uint64_t attention_padded(uint64_t count, uint64_t unit)
{
    return (count + unit - 1) / unit * unit;
}

#endif
