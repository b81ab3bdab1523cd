/* Forward is cut between threads by rows, backward by channels, so that no two threads add to the same element. */
#include "lib/kernels/embedding/embedding.h"

#include "lib/base/status.h"
#include "lib/device/cuda.h"
#include "lib/kernels/embedding/embedding_cpu.h"
#include "lib/kernels/embedding/embedding_cuda.h"
#include "lib/kernels/host.h"

#include <string.h>

enum { GRAIN_ELEMENTS = 16384, GRAIN_CHANNELS = 64, DIGIT_BITS = 8, DIGITS = 1 << DIGIT_BITS };

sluice_status slc_embedding_forward(sluice_stream *stream, sluice_dtype dtype, uint64_t batch, uint64_t length,
                                    uint64_t channels, const int32_t *tokens, const int32_t *types,
                                    const slc_embedding_tables *tables, void *out)
{
    if (!batch || !length || !channels) return SLUICE_OK;
    if (SLC_ON_CUDA(stream))
        return slc_embedding_forward_cuda(stream, dtype, batch, length, channels, tokens, types, tables, out);
    sluice_status status = slc_host_check(stream, "embedding_forward");
    if (status) return status;
    slc_embedding_forward_args args = {
        .dtype = dtype,
        .length = length,
        .channels = channels,
        .tokens = tokens,
        .types = types,
        .tables = *tables,
        .out = out,
        .stream = !(channels % 16) && slc_host_streams(out, batch * length * channels * sluice_dtype_bytes(dtype))};
    slc_host_run(stream, batch * length, 1 + GRAIN_ELEMENTS / channels, 1, SLC_ISA_PICK(slc_embedding_forward_range),
                 &args);
    return SLUICE_OK;
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

sluice_status slc_embedding_backward(sluice_stream *stream, sluice_dtype dtype, sluice_dtype gradient, uint64_t batch,
                                     uint64_t length, uint64_t channels, const int32_t *tokens, const int32_t *types,
                                     const void *dout, const slc_embedding_gradients *gradients, void *workspace)
{
    uint64_t rows = batch * length;
    if (!rows || !channels) return SLUICE_OK;
    if (rows > UINT32_MAX)
        return slc_error(SLUICE_ERR_UNSUPPORTED, "kernel embedding_backward: %llu places; at most 2^32 - 1",
                         (unsigned long long)rows);
    const bool lacks_order =
        (gradients->token && !gradients->token_order) || (gradients->type && types && !gradients->type_order);
    if (SLC_ON_CUDA(stream) && lacks_order)
        return slc_error(SLUICE_ERR_ARGUMENT, "kernel embedding_backward: a GPU needs the order of the places; give it "
                                              "what slc_embedding_order makes");
    if (SLC_ON_CUDA(stream))
        return slc_embedding_backward_cuda(stream, dtype, gradient, batch, length, channels, tokens, types, dout,
                                           gradients);
    sluice_status status = slc_host_check(stream, "embedding_backward");
    if (status) return status;
    uint32_t *lists[2] = {workspace, (uint32_t *)workspace + rows};
    slc_embedding_backward_args args = {
        .dtype = dtype, .gradient = gradient, .batch = batch, .length = length, .channels = channels, .dout = dout};
    if (gradients->token) {
        args.keys = tokens;
        args.order = gradients->token_order ? gradients->token_order : sort_rows(rows, tokens, lists[0], lists[1]);
        args.padding = gradients->padded ? gradients->padding : -1;
        args.table = gradients->token;
        slc_host_run(stream, channels, GRAIN_CHANNELS, 16, SLC_ISA_PICK(slc_embedding_keys_range), &args);
    }
    if (gradients->position) {
        args.table = gradients->position;
        slc_host_run(stream, channels, GRAIN_CHANNELS, 16, SLC_ISA_PICK(slc_embedding_position_range), &args);
    }
    if (gradients->type) {
        args.keys = types;
        args.padding = -1;
        args.order = gradients->type_order;
        if (types && !args.order) args.order = sort_rows(rows, types, lists[0], lists[1]);
        args.table = gradients->type;
        slc_host_run(stream, channels, GRAIN_CHANNELS, 16, SLC_ISA_PICK(slc_embedding_keys_range), &args);
    }
    return SLUICE_OK;
}
