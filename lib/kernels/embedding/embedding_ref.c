/* Gather and scatter, one element at a time. */
#include "lib/kernels/embedding/embedding_ref.h"

#include <stddef.h>

/* Finds element c of the rows that place (b, t) takes from each table. */
static void elements_of(const slc_embedding_ref_tables *tables, uint64_t channels, uint64_t token, uint64_t position,
                        uint64_t type, uint64_t c, double *out[3])
{
    out[0] = tables->token ? tables->token + token * channels + c : NULL;
    out[1] = tables->position ? tables->position + position * channels + c : NULL;
    out[2] = tables->type ? tables->type + type * channels + c : NULL;
}

void slc_embedding_forward_ref(uint64_t batch, uint64_t length, uint64_t channels, const int32_t *tokens,
                               const int32_t *types, const slc_embedding_ref_tables *tables, double *out)
{
    for (uint64_t row = 0; row < batch * length; row++)
        for (uint64_t c = 0; c < channels; c++) {
            double *element[3];
            elements_of(tables, channels, (uint64_t)tokens[row], row % length, types ? (uint64_t)types[row] : 0, c,
                        element);
            out[row * channels + c] = 0;
            for (int i = 0; i < 3; i++) out[row * channels + c] += element[i] ? *element[i] : 0;
        }
}

void slc_embedding_backward_ref(uint64_t batch, uint64_t length, uint64_t channels, const int32_t *tokens,
                                const int32_t *types, const double *dout, const slc_embedding_ref_tables *gradients)
{
    for (uint64_t row = 0; row < batch * length; row++)
        for (uint64_t c = 0; c < channels; c++) {
            double *element[3];
            elements_of(gradients, channels, (uint64_t)tokens[row], row % length, types ? (uint64_t)types[row] : 0, c,
                        element);
            for (int i = 0; i < 3; i++)
                if (element[i] && !(i == 0 && gradients->padding && tokens[row] == *gradients->padding))
                    *element[i] += dout[row * channels + c];
        }
}
