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
    bool stream; /* slc_host_streams */
} slc_embedding_forward_args;

/* Adds rows of dout to rows of one table. */
typedef struct {
    sluice_dtype dtype, gradient;
    uint64_t batch, length, channels;
    const int32_t *keys;   /* of each row of dout: the table's row; NULL: 0 */
    const uint32_t *order; /* rows of dout sorted by key; where keys is NULL: as they lie */
    int32_t padding;       /* the key whose rows are passed over; -1: none */
    const void *dout;
    void *table;
} slc_embedding_backward_args;

SLC_ISA_DECLARE(slc_embedding_forward_range);  /* ranges of rows */
SLC_ISA_DECLARE(slc_embedding_keys_range);     /* ranges of channels; rows of the table by key */
SLC_ISA_DECLARE(slc_embedding_position_range); /* ranges of channels; row t of the table: rows t, t + length, ... */

#endif
