/* Forward adds two rows. Backward walks the positions in order and adds to two rows of its channels. */
#include "lib/kernels/embedding/embedding_cpu.h"

#include "lib/kernels/lanes.h"

LANES_INLINE void add_rows(uint64_t count, const float *a, const float *b, float *out)
{
    uint64_t at = 0;
    for (; at + LANES <= count; at += LANES) lanes_store(out + at, lanes_add(lanes_load(a + at), lanes_load(b + at)));
    if (at < count) {
        uint64_t left = count - at;
        lanes_store_tail(out + at, left, lanes_add(lanes_load_tail(a + at, left, 0), lanes_load_tail(b + at, left, 0)));
    }
}

void SLC_ISA(slc_embedding_forward_range)(const void *context, uint32_t part, uint64_t first, uint64_t last)
{
    (void)part;
    const slc_embedding_forward_args *args = context;
    uint64_t channels = args->channels;
    for (uint64_t at = first; at < last; at++)
        add_rows(channels, args->token_table + (uint64_t)args->tokens[at] * channels,
                 args->position_table + at % args->length * channels, args->out + at * channels);
}

void SLC_ISA(slc_embedding_backward_range)(const void *context, uint32_t part, uint64_t first, uint64_t last)
{
    (void)part;
    const slc_embedding_backward_args *args = context;
    uint64_t channels = args->channels, positions = args->batch * args->length;
    for (uint64_t at = 0; at < positions; at++) {
        const float *dout = args->dout + at * channels + first;
        float *token = args->dtoken_table + (uint64_t)args->tokens[at] * channels + first;
        float *position = args->dposition_table + at % args->length * channels + first;
        add_rows(last - first, token, dout, token);
        add_rows(last - first, position, dout, position);
    }
}
