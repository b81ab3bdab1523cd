/* The fast backward of the embedding, one table after the other, compiled once for each instruction set. */
#ifndef SLC_KERNEL_EMBEDDING_CPU_H
#define SLC_KERNEL_EMBEDDING_CPU_H

#include "lib/kernels/embedding/embedding.h"

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

#endif
