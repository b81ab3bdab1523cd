/* Forward is cut between threads by positions, backward by channels, so that rows of equal tokens never meet. */
#include "lib/kernels/embedding/embedding.h"

#include "lib/kernels/embedding/embedding_cpu.h"
#include "lib/kernels/host.h"

enum { GRAIN_ELEMENTS = 16384, GRAIN_CHANNELS = 64 };

sluice_status slc_embedding_forward(slc_stream *stream, uint64_t batch, uint64_t length, uint64_t channels,
                                    const int32_t *tokens, const float *token_table, const float *position_table,
                                    float *out)
{
    sluice_status status = slc_host_check(stream, "embedding_forward");
    if (status || !channels) return status;
    slc_embedding_forward_args args = {.batch = batch,
                                       .length = length,
                                       .channels = channels,
                                       .tokens = tokens,
                                       .token_table = token_table,
                                       .position_table = position_table,
                                       .out = out};
    slc_host_run(stream, batch * length, 1 + GRAIN_ELEMENTS / channels, 1, SLC_ISA_PICK(slc_embedding_forward_range),
                 &args);
    return SLUICE_OK;
}

sluice_status slc_embedding_backward(slc_stream *stream, uint64_t batch, uint64_t length, uint64_t channels,
                                     const int32_t *tokens, const float *dout, float *dtoken_table,
                                     float *dposition_table)
{
    sluice_status status = slc_host_check(stream, "embedding_backward");
    if (status) return status;
    slc_embedding_backward_args args = {.batch = batch,
                                        .length = length,
                                        .channels = channels,
                                        .tokens = tokens,
                                        .dout = dout,
                                        .dtoken_table = dtoken_table,
                                        .dposition_table = dposition_table};
    slc_host_run(stream, channels, GRAIN_CHANNELS, 16, SLC_ISA_PICK(slc_embedding_backward_range), &args);
    return SLUICE_OK;
}
