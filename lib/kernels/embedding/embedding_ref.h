/* The plain loops of embedding.h in float64; tables and gradients that are NULL are skipped, types may be NULL. */
#ifndef SLC_KERNEL_EMBEDDING_REF_H
#define SLC_KERNEL_EMBEDDING_REF_H

#include <stdint.h>

typedef struct {
    double *token, *position, *type;
    const int32_t *padding; /* for gradients only: as in embedding.h */
} slc_embedding_ref_tables;

void slc_embedding_forward_ref(uint64_t batch, uint64_t length, uint64_t channels, const int32_t *tokens,
                               const int32_t *types, const slc_embedding_ref_tables *tables, double *out);
void slc_embedding_backward_ref(uint64_t batch, uint64_t length, uint64_t channels, const int32_t *tokens,
                                const int32_t *types, const double *dout, const slc_embedding_ref_tables *gradients);

#endif
