/* A tensor's chunk is served as a whole, because every piece is a launch. */
#include "lib/comm/lane/serve.h"

#include "lib/base/status.h"
#include "lib/comm/lane/geometry.h"

/* Returns the address of the packet that rank `from` has for this rank, `rank`. */
static const char *packet_from(const slc_op *op, int rank, int from)
{
    return from == rank ? (const char *)op->src + (uint64_t)rank * op->group->stride : slc_exchange_arrival(op, from);
}

static sluice_status serve_tensor(sluice_stream *stream, const slc_op *op, int rank, uint32_t tensor)
{
    const slc_compress_group *group = op->group;
    const slc_compress_shape *shape = &group->shapes[tensor];
    const slc_residue *server = &op->servers[tensor];
    const void *packets[SLC_COMPRESS_CUDA_MOST];
    for (uint32_t r = 0; r < shape->ranks; r++) packets[r] = packet_from(op, rank, (int)r) + group->offsets[tensor];
    const slc_compress_served served = {.shape = shape,
                                        .packets = packets,
                                        .server = server,
                                        .bins = server->bins,
                                        .packet =
                                            (char *)op->dst + (uint64_t)rank * group->stride + group->offsets[tensor],
                                        .words = op->words};
    sluice_status status = slc_fill_zero(stream, server->bins, SLC_NORM_BINS * sizeof *server->bins);
    if (!status) status = slc_compress_server(stream, &served, 0, slc_compress_chunk(shape));
    return status ? status : slc_compress_server_end(stream, &served);
}

sluice_status slc_exchange_serve(sluice_stream *stream, const slc_op *op, int rank)
{
    const slc_compress_group *group = op->group;
    if (group->shapes[0].ranks > SLC_COMPRESS_CUDA_MOST)
        return slc_error(SLUICE_ERR_UNSUPPORTED, "a compressed exchange of %u ranks: on a GPU at most %d can take part",
                         group->shapes[0].ranks, SLC_COMPRESS_CUDA_MOST);
    sluice_status status = SLUICE_OK;
    for (uint32_t i = 0; !status && i < group->count; i++)
        if (group->shapes[i].count) status = serve_tensor(stream, op, rank, i);
    return status;
}
