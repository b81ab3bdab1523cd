/* Forward is cut between threads by rows, backward by channels, so that no two threads add to the same element. */
#include "lib/kernels/embedding/embedding.h"

#include "lib/base/status.h"
#include "lib/kernels/dispatch.h"

#include <string.h>

enum { GRAIN_ELEMENTS = 16384, GRAIN_CHANNELS = 64, DIGIT_BITS = 8, DIGITS = 1 << DIGIT_BITS };

static void embedding_forward_host(sluice_stream *stream, const slc_embedding_forward_args *args)
{
    slc_host_run(stream, args->batch * args->length, 1 + GRAIN_ELEMENTS / args->channels, 1,
                 SLC_ISA_PICK(slc_embedding_forward_range), args);
}

sluice_status slc_embedding_forward(sluice_stream *stream, const slc_embedding_forward_args *args)
{
    if (!args->batch || !args->length || !args->channels) return SLUICE_OK;
    return SLC_DEVICE_RUN(stream, embedding_forward, args);
}

/* The workspace has two lists of rows, to sort from one into the other. */
uint64_t slc_embedding_backward_workspace_bytes(const sluice_stream *stream, uint64_t batch, uint64_t length,
                                                uint64_t channels)
{
    (void)channels;
    return SLC_ON_CUDA(stream) ? 0 : 2 * batch * length * sizeof(uint32_t);
}

/* A radix sort, lowest digit first, from one list into the other and back. Returns the list that holds the result,
 * which is a or b. */
static uint32_t *sort_rows(uint64_t rows, const int32_t *keys, uint32_t *a, uint32_t *b)
{
    uint64_t all = 0;
    for (uint64_t i = 0; i < rows; i++) {
        all |= (uint32_t)keys[i];
        a[i] = (uint32_t)i;
    }
    for (unsigned shift = 0; all >> shift; shift += DIGIT_BITS) {
        uint32_t place[DIGITS] = {0}, before = 0;
        for (uint64_t i = 0; i < rows; i++) place[(uint32_t)keys[i] >> shift & (DIGITS - 1)]++;
        for (int d = 0; d < DIGITS; d++) {
            uint32_t count = place[d];
            place[d] = before;
            before += count;
        }
        for (uint64_t i = 0; i < rows; i++) b[place[(uint32_t)keys[a[i]] >> shift & (DIGITS - 1)]++] = a[i];
        uint32_t *sorted = b;
        b = a;
        a = sorted;
    }
    return a;
}

void slc_embedding_order(uint64_t places, const int32_t *keys, uint32_t *order, uint32_t *scratch)
{
    const uint32_t *sorted = sort_rows(places, keys, order, scratch);
    if (sorted != order) memcpy(order, sorted, places * sizeof *order);
}

static void embedding_backward_host(sluice_stream *stream, const slc_embedding_backward_args *args)
{
    const slc_embedding_gradients *g = &args->gradients;
    const uint64_t rows = args->batch * args->length, channels = args->channels;
    uint32_t *lists[2] = {args->workspace, (uint32_t *)args->workspace + rows};
    slc_embedding_table_args one = {.all = *args};
    if (g->token) {
        one.keys = args->tokens;
        one.order = g->token_order ? g->token_order : sort_rows(rows, args->tokens, lists[0], lists[1]);
        one.padding = g->padded ? g->padding : -1;
        one.table = g->token;
        slc_host_run(stream, channels, GRAIN_CHANNELS, 16, SLC_ISA_PICK(slc_embedding_keys_range), &one);
    }
    if (g->position) {
        one.table = g->position;
        slc_host_run(stream, channels, GRAIN_CHANNELS, 16, SLC_ISA_PICK(slc_embedding_position_range), &one);
    }
    if (g->type) {
        one.keys = args->types;
        one.padding = -1;
        one.order = g->type_order;
        if (one.keys && !one.order) one.order = sort_rows(rows, one.keys, lists[0], lists[1]);
        one.table = g->type;
        slc_host_run(stream, channels, GRAIN_CHANNELS, 16, SLC_ISA_PICK(slc_embedding_keys_range), &one);
    }
}

sluice_status slc_embedding_backward(sluice_stream *stream, const slc_embedding_backward_args *args)
{
    const slc_embedding_gradients *g = &args->gradients;
    const uint64_t rows = args->batch * args->length;
    if (!rows || !args->channels) return SLUICE_OK;
    if (rows > UINT32_MAX)
        return slc_error(SLUICE_ERR_UNSUPPORTED, "kernel embedding_backward: %llu places; at most 2^32 - 1",
                         (unsigned long long)rows);
    const bool lacks_order = (g->token && !g->token_order) || (g->type && args->types && !g->type_order);
    if (SLC_ON_CUDA(stream) && lacks_order)
        return slc_error(SLUICE_ERR_ARGUMENT, "kernel embedding_backward: a GPU needs the order of the places; give it "
                                              "what slc_embedding_order makes");
    return SLC_DEVICE_RUN(stream, embedding_backward, args);
}
