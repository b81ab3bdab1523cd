/* The copying and adding of operations, a chunk at a time. An owner reads every contribution to its part where it lies:
 * in its own buffer, in a neighbour's, or in the scratch into which a message came. It adds in rank order and writes
 * the result to its own buffer and, for an all-reduce, to every neighbour's. A gather pulls the parts from their
 * owners. collectives_test.c covers this file. */
#include "lib/comm/lane/work.h"

#include "lib/base/status.h"
#include "lib/comm/lane/geometry.h"
#include "lib/comm/lane/messages.h"
#include "lib/comm/lane/rows/rows_work.h"
#include "lib/comm/lane/scratch.h"
#include "lib/kernels/copy/copy.h"
#include "lib/kernels/reduce/reduce.h"

#include <string.h>

/* A tensor of a compressed exchange takes at least the time of this many elements, however small it is. */
static const uint64_t tensor_cost = 1024;

/* The bytes that are worked on at a time: what a cache holds, or on a device that runs ahead all there are, because
 * every piece is a launch. */
static uint64_t piece_bytes(const slc_comm *comm)
{
    return slc_device_runs_ahead(comm->attached.stream.device) ? UINT64_MAX : comm->work.chunk_bytes;
}

static sluice_status call_reduce(slc_comm *comm, const slc_active_op *active, uint64_t count,
                                 uint32_t destination_count)
{
    const slc_op *op = &active->op;
    uint32_t sources = (uint32_t)comm->size;
    const void *const *from = comm->work.sources;
    void *const *to = comm->work.destinations;
    const slc_reduce_args args = {.count = count,
                                  .from = op->dtype,
                                  .to = slc_op_result(op),
                                  .sources = from,
                                  .source_count = sources,
                                  .destination_count = destination_count,
                                  .destinations = to,
                                  .scale = op->scale,
                                  .accumulate = op->accumulate,
                                  .stream_stores = active->past_cache};
    switch (op->dtype) {
    case SLUICE_FP32:
    case SLUICE_BF16: return slc_reduce(&comm->attached.stream, &args);
    case SLUICE_INT64:
        return slc_reduce_int64(&comm->attached.stream, count, (const int64_t *const *)from, sources,
                                (int64_t *const *)to, destination_count);
    case SLUICE_FP64:
        return slc_reduce_float64(&comm->attached.stream, count, (const double *const *)from, sources,
                                  (double *const *)to, destination_count);
    default: return slc_error(SLUICE_ERR_UNSUPPORTED, "sums of %s", sluice_dtype_name(op->dtype));
    }
}

/* Fills comm->work.sources for elements [offset, ...) of this rank's part of a block. */
static void find_sources(slc_comm *comm, const slc_active_op *active, uint64_t block, uint64_t offset)
{
    const slc_op *op = &active->op;
    uint64_t bytes = sluice_dtype_bytes(op->dtype);
    uint64_t begin = slc_part_begin(op, SLC_WHOLE, block, comm->rank, comm->size) + offset;
    const char *own = (const char *)op->src + begin * bytes;
    for (int rank = 0; rank < comm->size; rank++) {
        if (rank == comm->rank)
            comm->work.sources[rank] = own;
        else if (slc_is_neighbour(comm->neighbours, rank))
            comm->work.sources[rank] = slc_at_neighbour(comm, rank, own);
        else
            comm->work.sources[rank] = slc_scratch_part(comm, active, block, rank) + offset * bytes;
    }
}

static uint32_t find_destinations(slc_comm *comm, const slc_active_op *active, uint64_t block, uint64_t offset)
{
    const slc_op *op = &active->op;
    uint64_t begin = slc_part_begin(op, op->dst_layout, block, comm->rank, comm->size) + offset;
    char *own = (char *)op->dst + begin * sluice_dtype_bytes(slc_op_result(op));
    uint32_t count = 0;
    comm->work.destinations[count++] = own;
    if (op->kind != SLC_ALL_REDUCE) return count;
    for (int i = 0; i < comm->neighbours->count; i++)
        comm->work.destinations[count++] = slc_at_neighbour(comm, comm->neighbours->list[i], own);
    return count;
}

/* True if there is nothing to do: a world of one rank sums in place, with a scale of one. */
static bool nothing_to_add(const slc_comm *comm, const slc_op *op)
{
    bool scaled = (op->dtype == SLUICE_FP32 || op->dtype == SLUICE_BF16) && op->scale != 1.0f;
    return comm->size == 1 && op->src == op->dst && op->src_layout == op->dst_layout && !scaled && !op->accumulate;
}

static bool reduce_step(slc_comm *comm, slc_active_op *active)
{
    if (nothing_to_add(comm, &active->op)) {
        active->work_done = true;
        return true;
    }
    if (!active->offset && !slc_messages_arrived(comm, active, active->block)) return false;
    uint64_t part = slc_part_length(&active->op, active->block, comm->size);
    uint64_t chunk = piece_bytes(comm) / sluice_dtype_bytes(active->op.dtype);
    uint64_t count = slc_least(part - active->offset, chunk);
    find_sources(comm, active, active->block, active->offset);
    uint32_t destinations = find_destinations(comm, active, active->block, active->offset);
    sluice_status status = call_reduce(comm, active, count, destinations);
    if (status) {
        slc_op_fail(comm, &active->op, status);
        return true;
    }
    active->offset += count;
    if (active->offset < part) return true;
    slc_messages_reduced(comm, active, active->block);
    active->offset = 0;
    active->work_done = ++active->block == active->end_block;
    return true;
}

/* Copies the next chunk of a run of `length` elements. True when the last one was copied. */
static bool copy_chunk(slc_comm *comm, slc_active_op *active, const char *src, char *dst, uint64_t length)
{
    uint64_t bytes = sluice_dtype_bytes(active->op.dtype), chunk = piece_bytes(comm) / bytes;
    uint64_t count = slc_least(length - active->offset, chunk), at = active->offset * bytes;
    sluice_status status = src == dst ? SLUICE_OK
                           : active->past_cache
                               ? slc_copy_past_cache(&comm->attached.stream, dst + at, src + at, count * bytes)
                               : slc_copy(&comm->attached.stream, dst + at, src + at, count * bytes);
    if (status) slc_op_fail(comm, &active->op, status);
    active->offset += src == dst ? length - active->offset : count;
    if (active->offset < length) return false;
    active->offset = 0;
    return true;
}

/* Step 0 copies this rank's part, step i that of the i-th rank after it, so that not all ranks read from the same one.
 */
static void gather_step(slc_comm *comm, slc_active_op *active)
{
    const slc_op *op = &active->op;
    uint64_t bytes = sluice_dtype_bytes(op->dtype);
    int rank = (comm->rank + active->step) % comm->size;
    bool own = active->step == 0;
    if (own || slc_is_neighbour(comm->neighbours, rank)) {
        const char *src =
            (const char *)op->src + slc_part_begin(op, op->src_layout, active->block, rank, comm->size) * bytes;
        char *dst = (char *)op->dst + slc_part_begin(op, SLC_WHOLE, active->block, rank, comm->size) * bytes;
        if (!own) src = slc_at_neighbour(comm, rank, src);
        if (!copy_chunk(comm, active, src, dst, slc_part_length(op, active->block, comm->size))) return;
    }
    if (++active->step < comm->size) return;
    active->step = 0;
    active->work_done = ++active->block == active->end_block;
}

/* Fills comm->work.sources with every rank's packet for this rank's chunk of the tensor at work. */
static void find_packets(slc_comm *comm, const slc_active_op *active)
{
    const slc_op *op = &active->op;
    const uint64_t offset = op->group->offsets[active->tensor];
    const char *own = (const char *)op->src + slc_part_begin(op, SLC_WHOLE, 0, comm->rank, comm->size) + offset;
    for (int rank = 0; rank < comm->size; rank++)
        comm->work.sources[rank] = rank == comm->rank                         ? own
                                   : slc_is_neighbour(comm->neighbours, rank) ? slc_at_neighbour(comm, rank, own)
                                                                              : slc_exchange_arrival(op, rank) + offset;
}

static sluice_status push_to_neighbours(slc_comm *comm, char *own, uint64_t bytes)
{
    sluice_status status = SLUICE_OK;
    for (int i = 0; bytes && !status && i < comm->neighbours->count; i++)
        status = slc_copy(&comm->attached.stream, slc_at_neighbour(comm, comm->neighbours->list[i], own), own, bytes);
    return status;
}

/* Averages and compresses about `most` elements of this rank's chunk of the tensor at work, in whole blocks of scales.
 * *whole: the chunk is all in this piece, and the caller pushes its packet; else the bits are pushed at once and the
 * scales with the last piece. */
static sluice_status serve_piece(slc_comm *comm, slc_active_op *active, char *packet, uint64_t most, uint64_t *count,
                                 bool *whole)
{
    const slc_compress_shape *shape = &active->op.group->shapes[active->tensor];
    const slc_residue *server = &active->op.servers[active->tensor];
    const uint64_t chunk = slc_compress_chunk(shape), scales_bytes = slc_compress_scales(shape) * sizeof(float);
    const uint64_t unit = shape->scale_elements ? shape->scale_elements : 64, first = active->offset;
    const uint64_t left = chunk - first, piece = (most + unit - 1) / unit * unit;
    *count = slc_least(left, piece);
    *whole = *count == chunk;
    find_packets(comm, active);
    const slc_compress_served served = {
        .shape = shape, .packets = comm->work.sources, .server = server, .bins = active->bins, .packet = packet};
    sluice_status status = slc_compress_server(&comm->attached.stream, &served, first, *count);
    if (!status && !*whole) status = push_to_neighbours(comm, packet + scales_bytes + first / 8, *count / 8);
    active->offset += *count;
    if (status || active->offset < chunk) return status;
    status = slc_compress_server_end(&comm->attached.stream, &served);
    memset(active->bins, 0, sizeof active->bins);
    active->offset = 0, active->tensor++;
    return status || *whole ? status : push_to_neighbours(comm, packet, scales_bytes);
}

/* Serves as many tensors, or as much of one, as make up a piece of work. Tensors that are served whole go to every
 * neighbour in one copy. */
static sluice_status serve_some(slc_comm *comm, slc_active_op *active)
{
    const slc_compress_group *group = active->op.group;
    char *packets = (char *)active->op.dst + slc_part_begin(&active->op, SLC_WHOLE, 0, comm->rank, comm->size);
    uint64_t ready = group->offsets[active->tensor], end = ready, budget = comm->work.chunk_bytes / 8;
    sluice_status status = SLUICE_OK;
    while (!status && budget && active->tensor < group->count) {
        uint64_t count, begin = end;
        bool whole;
        status = serve_piece(comm, active, packets + begin, budget, &count, &whole);
        budget -= slc_least(count + tensor_cost, budget);
        end = active->tensor < group->count ? group->offsets[active->tensor] : group->packet_bytes;
        if (status || whole) continue;
        status = push_to_neighbours(comm, packets + ready, begin - ready);
        ready = end;
    }
    return status ? status : push_to_neighbours(comm, packets + ready, end - ready);
}

static bool exchange_step(slc_comm *comm, slc_active_op *active)
{
    if (!active->tensor && !active->offset && !slc_messages_arrived(comm, active, 0)) return false;
    sluice_status status = serve_some(comm, active);
    if (status) {
        slc_op_fail(comm, &active->op, status);
        return true;
    }
    if (active->tensor < active->op.group->count) return true;
    slc_messages_reduced(comm, active, 0);
    active->work_done = true;
    return true;
}

static void broadcast_step(slc_comm *comm, slc_active_op *active)
{
    const slc_op *op = &active->op;
    if (comm->rank == op->root || !slc_is_neighbour(comm->neighbours, op->root)) {
        active->work_done = true;
        return;
    }
    char *own = (char *)op->dst + active->block * op->block_elements * sluice_dtype_bytes(op->dtype);
    if (!copy_chunk(comm, active, slc_at_neighbour(comm, op->root, own), own, slc_op_block_length(op, active->block)))
        return;
    active->work_done = ++active->block == active->end_block;
}

bool slc_work_step(slc_comm *comm, slc_active_op *active)
{
    if (active->skipped) {
        active->work_done = true;
        return true;
    }
    switch (active->op.kind) {
    case SLC_REDUCE_SCATTER:
    case SLC_ALL_REDUCE: return reduce_step(comm, active);
    case SLC_ALL_GATHER: gather_step(comm, active); return true;
    case SLC_COMPRESSED_EXCHANGE: return exchange_step(comm, active);
    case SLC_BROADCAST: broadcast_step(comm, active); return true;
    case SLC_GATHER_ROWS:
    case SLC_REDUCE_ROWS: return slc_row_op_work(comm, active);
    case SLC_BARRIER:
    case SLC_CALL: active->work_done = true; return true;
    }
    return false;
}
