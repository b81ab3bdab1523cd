/* Whole chunks are served, and many at once, because each call is a launch of kernels. */
#include "lib/comm/lane/serve.h"

#include "lib/base/status.h"
#include "lib/comm/lane/geometry.h"

enum { TOGETHER = 16 }; /* chunks that are handed over at a time */

static slc_compress_arrived chunk_of(const slc_op *op, int rank, uint32_t tensor)
{
    const slc_compress_group *group = op->group;
    const uint64_t stride = group->stride, offset = group->offsets[tensor], own = (uint64_t)rank * stride + offset;
    return (slc_compress_arrived){.shape = &group->shapes[tensor],
                                  .packets = slc_exchange_arrival(op, 0) + offset,
                                  .own = (const char *)op->src + own,
                                  .stride = stride,
                                  .rank = (uint32_t)rank,
                                  .server = &op->servers[tensor],
                                  .packet = (char *)op->dst + own,
                                  .words = op->words};
}

sluice_status slc_exchange_serve(sluice_stream *stream, const slc_op *op, int rank)
{
    const uint32_t count = op->group->count;
    slc_compress_arrived chunks[TOGETHER];
    sluice_status status = SLUICE_OK;
    for (uint32_t first = 0; !status && first < count; first += TOGETHER) {
        const uint32_t left = count - first, own = left < TOGETHER ? left : TOGETHER;
        for (uint32_t i = 0; i < own; i++) chunks[i] = chunk_of(op, rank, first + i);
        status = slc_compress_server_many(stream, own, chunks);
    }
    return status;
}
