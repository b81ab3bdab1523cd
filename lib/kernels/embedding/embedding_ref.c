/* Gather and scatter, one element at a time. */
#include "lib/kernels/embedding/embedding_ref.h"

void slc_embedding_forward_ref(uint64_t batch, uint64_t length, uint64_t channels, const int32_t *tokens,
                               const double *token_table, const double *position_table, double *out)
{
    for (uint64_t b = 0; b < batch; b++)
        for (uint64_t t = 0; t < length; t++)
            for (uint64_t c = 0; c < channels; c++) {
                uint64_t token = (uint64_t)tokens[b * length + t];
                out[(b * length + t) * channels + c] =
                    token_table[token * channels + c] + position_table[t * channels + c];
            }
}

void slc_embedding_backward_ref(uint64_t batch, uint64_t length, uint64_t channels, const int32_t *tokens,
                                const double *dout, double *dtoken_table, double *dposition_table)
{
    for (uint64_t b = 0; b < batch; b++)
        for (uint64_t t = 0; t < length; t++)
            for (uint64_t c = 0; c < channels; c++) {
                uint64_t token = (uint64_t)tokens[b * length + t];
                dtoken_table[token * channels + c] += dout[(b * length + t) * channels + c];
                dposition_table[t * channels + c] += dout[(b * length + t) * channels + c];
            }
}
