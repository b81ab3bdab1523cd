/* The copying and adding of operations, a chunk at a time. An owner reads every contribution to its part where it lies:
 * in its own buffer, in a neighbour's, or in the scratch into which a message came. It adds in rank order and writes
 * the result to its own buffer and, for an all-reduce, to every neighbour's. A gather pulls the parts from their
 * owners. */
#include "lib/comm/lane/work.h"

#include "lib/base/status.h"
#include "lib/comm/lane/geometry.h"
#include "lib/comm/lane/messages.h"
#include "lib/comm/lane/row_chunks.h"
#include "lib/comm/lane/rows_work.h"
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

static sluice_status call_reduce(slc_comm *comm, const slc_active_op *run, uint64_t count, uint32_t destination_count)
{
    const slc_op *op = &run->op;
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
                                  .stream_stores = run->past_cache};
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
static void find_sources(slc_comm *comm, const slc_active_op *run, uint64_t block, uint64_t offset)
{
    const slc_op *op = &run->op;
    uint64_t bytes = sluice_dtype_bytes(op->dtype);
    uint64_t begin = slc_part_begin(op, SLC_WHOLE, block, comm->rank, comm->size) + offset;
    const char *own = (const char *)op->src + begin * bytes;
    for (int rank = 0; rank < comm->size; rank++) {
        if (rank == comm->rank)
            comm->work.sources[rank] = own;
        else if (slc_is_neighbour(comm->neighbours, rank))
            comm->work.sources[rank] = slc_at_neighbour(comm, rank, own);
        else
            comm->work.sources[rank] = slc_scratch_part(comm, run, block, rank) + offset * bytes;
    }
}

static uint32_t find_destinations(slc_comm *comm, const slc_active_op *run, uint64_t block, uint64_t offset)
{
    const slc_op *op = &run->op;
    uint64_t begin = slc_part_begin(op, op->dst_layout, block, comm->rank, comm->size) + offset;
    char *own = (char *)op->dst + begin * sluice_dtype_bytes(slc_op_result(op));
    uint32_t count = 0;
    comm->work.destinations[count++] = own;
    if (op->kind != SLC_ALL_REDUCE) return count;
    for (int i = 0; i < comm->neighbours->count; i++)
        comm->work.destinations[count++] = slc_at_neighbour(comm, comm->neighbours->list[i], own);
    return count;
}

/* A world of one rank that sums in place, with a scale of one, has nothing to do. */
static bool nothing_to_add(const slc_comm *comm, const slc_op *op)
{
    bool scaled = (op->dtype == SLUICE_FP32 || op->dtype == SLUICE_BF16) && op->scale != 1.0f;
    return comm->size == 1 && op->src == op->dst && op->src_layout == op->dst_layout && !scaled && !op->accumulate;
}

static bool reduce_step(slc_comm *comm, slc_active_op *run)
{
    if (nothing_to_add(comm, &run->op)) {
        run->work_done = true;
        return true;
    }
    if (!run->offset && !slc_messages_arrived(comm, run, run->block)) return false;
    uint64_t part = slc_part_length(&run->op, run->block, comm->size);
    uint64_t chunk = piece_bytes(comm) / sluice_dtype_bytes(run->op.dtype);
    uint64_t count = slc_least(part - run->offset, chunk);
    find_sources(comm, run, run->block, run->offset);
    uint32_t destinations = find_destinations(comm, run, run->block, run->offset);
    sluice_status status = call_reduce(comm, run, count, destinations);
    if (status) {
        slc_op_fail(comm, &run->op, status);
        return true;
    }
    run->offset += count;
    if (run->offset < part) return true;
    slc_messages_reduced(comm, run, run->block);
    run->offset = 0;
    run->work_done = ++run->block == run->end_block;
    return true;
}

/* Copies the next chunk of a run of `length` elements. True when the last one was copied. */
static bool copy_chunk(slc_comm *comm, slc_active_op *run, const char *src, char *dst, uint64_t length)
{
    uint64_t bytes = sluice_dtype_bytes(run->op.dtype), chunk = piece_bytes(comm) / bytes;
    uint64_t count = slc_least(length - run->offset, chunk), at = run->offset * bytes;
    sluice_status status = src == dst ? SLUICE_OK
                           : run->past_cache
                               ? slc_copy_past_cache(&comm->attached.stream, dst + at, src + at, count * bytes)
                               : slc_copy(&comm->attached.stream, dst + at, src + at, count * bytes);
    if (status) slc_op_fail(comm, &run->op, status);
    run->offset += src == dst ? length - run->offset : count;
    if (run->offset < length) return false;
    run->offset = 0;
    return true;
}

/* Step 0 copies this rank's part, step i that of the i-th rank after it, so that not all ranks read from the same one.
 */
static void gather_step(slc_comm *comm, slc_active_op *run)
{
    const slc_op *op = &run->op;
    uint64_t bytes = sluice_dtype_bytes(op->dtype);
    int rank = (comm->rank + run->step) % comm->size;
    bool own = run->step == 0;
    if (own || slc_is_neighbour(comm->neighbours, rank)) {
        const char *src =
            (const char *)op->src + slc_part_begin(op, op->src_layout, run->block, rank, comm->size) * bytes;
        char *dst = (char *)op->dst + slc_part_begin(op, SLC_WHOLE, run->block, rank, comm->size) * bytes;
        if (!own) src = slc_at_neighbour(comm, rank, src);
        if (!copy_chunk(comm, run, src, dst, slc_part_length(op, run->block, comm->size))) return;
    }
    if (++run->step < comm->size) return;
    run->step = 0;
    run->work_done = ++run->block == run->end_block;
}

/* Fills comm->work.sources with every rank's packet for this rank's chunk of the tensor at work. */
static void find_packets(slc_comm *comm, const slc_active_op *run)
{
    const slc_op *op = &run->op;
    const uint64_t offset = op->group->offsets[run->tensor];
    const char *own = (const char *)op->src + slc_part_begin(op, SLC_WHOLE, 0, comm->rank, comm->size) + offset;
    for (int rank = 0; rank < comm->size; rank++)
        comm->work.sources[rank] = rank == comm->rank ? own
                                   : slc_is_neighbour(comm->neighbours, rank)
                                       ? slc_at_neighbour(comm, rank, own)
                                       : slc_messages_packet(comm, run, rank) + offset;
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
static sluice_status serve_piece(slc_comm *comm, slc_active_op *run, char *packet, uint64_t most, uint64_t *count,
                                 bool *whole)
{
    const slc_compress_shape *shape = &run->op.group->shapes[run->tensor];
    const slc_residue *server = &run->op.servers[run->tensor];
    const uint64_t chunk = slc_compress_chunk(shape), scales_bytes = slc_compress_scales(shape) * sizeof(float);
    const uint64_t unit = shape->scale_elements ? shape->scale_elements : 64, first = run->offset;
    const uint64_t left = chunk - first, piece = (most + unit - 1) / unit * unit;
    *count = slc_least(left, piece);
    *whole = *count == chunk;
    find_packets(comm, run);
    const slc_compress_served served = {
        .shape = shape, .packets = comm->work.sources, .server = server, .bins = run->bins, .packet = packet};
    sluice_status status = slc_compress_server(&comm->attached.stream, &served, first, *count);
    if (!status && !*whole) status = push_to_neighbours(comm, packet + scales_bytes + first / 8, *count / 8);
    run->offset += *count;
    if (status || run->offset < chunk) return status;
    slc_compress_server_end(&served);
    memset(run->bins, 0, sizeof run->bins);
    run->offset = 0, run->tensor++;
    return *whole ? SLUICE_OK : push_to_neighbours(comm, packet, scales_bytes);
}

/* Serves as many tensors, or as much of one, as make up a piece of work. Tensors that are served whole go to every
 * neighbour in one copy. */
static sluice_status serve_some(slc_comm *comm, slc_active_op *run)
{
    const slc_compress_group *group = run->op.group;
    char *packets = (char *)run->op.dst + slc_part_begin(&run->op, SLC_WHOLE, 0, comm->rank, comm->size);
    uint64_t ready = group->offsets[run->tensor], end = ready, budget = comm->work.chunk_bytes / 8;
    sluice_status status = SLUICE_OK;
    while (!status && budget && run->tensor < group->count) {
        uint64_t count, begin = end;
        bool whole;
        status = serve_piece(comm, run, packets + begin, budget, &count, &whole);
        budget -= slc_least(count + tensor_cost, budget);
        end = run->tensor < group->count ? group->offsets[run->tensor] : group->packet_bytes;
        if (status || whole) continue;
        status = push_to_neighbours(comm, packets + ready, begin - ready);
        ready = end;
    }
    return status ? status : push_to_neighbours(comm, packets + ready, end - ready);
}

static bool exchange_step(slc_comm *comm, slc_active_op *run)
{
    if (!run->tensor && !run->offset && !slc_messages_arrived(comm, run, 0)) return false;
    sluice_status status = serve_some(comm, run);
    if (status) {
        slc_op_fail(comm, &run->op, status);
        return true;
    }
    if (run->tensor < run->op.group->count) return true;
    slc_messages_reduced(comm, run, 0);
    run->work_done = true;
    return true;
}

static void broadcast_step(slc_comm *comm, slc_active_op *run)
{
    const slc_op *op = &run->op;
    if (comm->rank == op->root || !slc_is_neighbour(comm->neighbours, op->root)) {
        run->work_done = true;
        return;
    }
    char *own = (char *)op->dst + run->block * op->block_elements * sluice_dtype_bytes(op->dtype);
    if (!copy_chunk(comm, run, slc_at_neighbour(comm, op->root, own), own, slc_op_block_length(op, run->block))) return;
    run->work_done = ++run->block == run->end_block;
}

bool slc_work_step(slc_comm *comm, slc_active_op *run)
{
    if (run->skipped) {
        run->work_done = true;
        return true;
    }
    switch (run->op.kind) {
    case SLC_REDUCE_SCATTER:
    case SLC_ALL_REDUCE: return reduce_step(comm, run);
    case SLC_ALL_GATHER: gather_step(comm, run); return true;
    case SLC_COMPRESSED_EXCHANGE: return exchange_step(comm, run);
    case SLC_BROADCAST: broadcast_step(comm, run); return true;
    case SLC_GATHER_ROWS:
    case SLC_REDUCE_ROWS: return slc_row_op_work(comm, run);
    case SLC_BARRIER:
    case SLC_CALL: run->work_done = true; return true;
    }
    return false;
}
