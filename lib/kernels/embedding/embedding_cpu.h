/* The fast embedding, compiled once for each instruction set. */
#ifndef SLC_KERNEL_EMBEDDING_CPU_H
#define SLC_KERNEL_EMBEDDING_CPU_H

#include "lib/kernels/isa.h"

typedef struct {
    uint64_t batch, length, channels;
    const int32_t *tokens;
    const float *token_table, *position_table;
    float *out;
} slc_embedding_forward_args;

typedef struct {
    uint64_t batch, length, channels;
    const int32_t *tokens;
    const float *dout;
    float *dtoken_table, *dposition_table;
} slc_embedding_backward_args;

SLC_ISA_DECLARE(slc_embedding_forward_range);  /* ranges of positions */
SLC_ISA_DECLARE(slc_embedding_backward_range); /* ranges of channels */

#endif
