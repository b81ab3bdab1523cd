/* The plain loops of embedding.h in float64. */
#ifndef SLC_KERNEL_EMBEDDING_REF_H
#define SLC_KERNEL_EMBEDDING_REF_H

#include <stdint.h>

void slc_embedding_forward_ref(uint64_t batch, uint64_t length, uint64_t channels, const int32_t *tokens,
                               const double *token_table, const double *position_table, double *out);
void slc_embedding_backward_ref(uint64_t batch, uint64_t length, uint64_t channels, const int32_t *tokens,
                                const double *dout, double *dtoken_table, double *dposition_table);

#endif
