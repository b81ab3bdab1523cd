/* The fast embedding, compiled once for each instruction set. */
#ifndef SLC_KERNEL_EMBEDDING_CPU_H
#define SLC_KERNEL_EMBEDDING_CPU_H

#include "lib/kernels/embedding/embedding.h"
#include "lib/kernels/isa.h"

typedef struct {
    sluice_dtype dtype;
    uint64_t length, channels;
    const int32_t *tokens, *types;
    slc_embedding_tables tables;
    void *out;
    bool stream; /* result of slc_host_streams */
} slc_embedding_forward_args;

/* Adds rows of dout to rows of one table. */
typedef struct {
    sluice_dtype dtype, gradient;
    uint64_t batch, length, channels;
    const int32_t *keys;   /* the table's row for each row of dout; NULL: 0 for all */
    const uint32_t *order; /* rows of dout sorted by key; unused if keys is NULL: rows are taken in order */
    int32_t padding;       /* the key whose rows are skipped; -1: none */
    const void *dout;
    void *table;
} slc_embedding_backward_args;

SLC_ISA_DECLARE(slc_embedding_forward_range);  /* over ranges of rows */
SLC_ISA_DECLARE(slc_embedding_keys_range);     /* over ranges of channels; keys give the table's rows */
SLC_ISA_DECLARE(slc_embedding_position_range); /* over ranges of channels; row t of the table gets rows t, t + length,
                                                  ... of dout */

#endif
