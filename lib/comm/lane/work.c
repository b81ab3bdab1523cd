/* The copying and adding of an operation, a chunk at a time. An owner reads every contribution to its part where it
 * lies: its own buffer, a neighbour's, or the scratch that a message arrived in. Sums go in rank order; the result is
 * written here and, for an all-reduce, to every neighbour. A gather pulls the parts from their owners. */
#include "lib/comm/lane/lane.h"

#include "lib/base/status.h"
#include "lib/comm/lane/geometry.h"
#include "lib/comm/lane/rows.h"
#include "lib/kernels/reduce/reduce.h"

#include <string.h>

/* What a tensor of a compressed exchange takes however small it is, in elements. */
static const uint64_t tensor_cost = 1024;

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash ^= value + 0x9e3779b97f4a7c15u + (hash << 6) + (hash >> 2);
    return hash * 0xff51afd7ed558ccdu;
}

static uint64_t mix_group(uint64_t hash, const slc_compress_group *group)
{
    for (uint32_t i = 0; i < group->count; i++)
        hash = mix(mix(hash, group->shapes[i].count), group->shapes[i].scale_elements);
    return hash;
}

static uint64_t mix_rows(uint64_t hash, const slc_comm *comm, const slc_rows *rows)
{
    hash = mix(mix(hash, rows->row_elements), rows->row_count);
    return mix(mix(hash, rows->most), (uint64_t)((const char *)rows->lists - comm->base));
}

uint64_t slc_op_signature(const slc_comm *comm, const slc_op *op, bool skipped)
{
    uint64_t hash = mix((uint64_t)op->kind * 2 + skipped, (uint64_t)op->dtype);
    if (op->kind == SLC_BARRIER) return hash;
    hash = mix(mix(hash, op->elements), op->block_elements);
    hash = mix(mix(hash, op->first_block), op->block_count);
    hash = mix(hash, (uint64_t)op->widen * 4 + (uint64_t)op->src_layout * 2 + (uint64_t)op->dst_layout);
    hash = mix(hash, (uint64_t)((const char *)op->src - comm->base));
    if (op->kind == SLC_COMPRESSED_EXCHANGE)
        return mix(mix_group(hash, op->group), (uint64_t)((const char *)op->dst - comm->base));
    if (slc_moves_rows(op)) return mix_rows(hash, comm, op->rows);
    return op->kind == SLC_ALL_REDUCE || op->kind == SLC_BROADCAST ? mix(hash, (uint64_t)op->root) : hash;
}

bool slc_peers_ready(slc_comm *comm, slc_active_op *run)
{
    slc_neighbours *neighbours = comm->neighbours;
    for (int i = 0; i < neighbours->count; i++) {
        const slc_control_page *page = neighbours->peers[neighbours->list[i]].page;
        uint32_t ready = atomic_load_explicit(&page->ready, memory_order_acquire);
        if ((int32_t)(ready - (run->wire + 1)) < 0) return false;
    }
    for (int i = 0; i < neighbours->count; i++) {
        int rank = neighbours->list[i];
        uint64_t theirs = atomic_load_explicit(&neighbours->peers[rank].page->signature[run->wire % SLC_SIGNATURES],
                                               memory_order_relaxed);
        if (theirs == run->signature) continue;
        slc_failure_set(comm->failure, SLUICE_ERR_MISMATCH, SLC_TELL_FACT,
                        "rank %d and rank %d submitted different operations where rank %d has \"%s\" (kind, type, "
                        "blocks, place in the arena or whether it is skipped differ): submit the same ones in the same "
                        "order on every rank",
                        rank, comm->rank, comm->rank, run->op.what ? run->op.what : "operation");
        return false;
    }
    return true;
}

static void fail_kernel(slc_comm *comm, const slc_active_op *run, sluice_status status)
{
    slc_failure_set(comm->failure, status, SLC_TELL_OWN, "%s: %s", run->op.what ? run->op.what : "operation",
                    sluice_last_error());
}

static sluice_status call_reduce(slc_comm *comm, const slc_op *op, uint64_t count, uint32_t destination_count)
{
    uint32_t sources = (uint32_t)comm->size;
    const void *const *from = comm->sources;
    void *const *to = comm->destinations;
    switch (op->dtype) {
    case SLC_FLOAT32:
    case SLC_BFLOAT16:
        return slc_reduce(&comm->stream, count, slc_float_type(op->dtype), from, sources, op->scale, op->accumulate,
                          slc_float_type(slc_op_result(op)), to, destination_count, false);
    case SLC_INT64:
        return slc_reduce_int64(&comm->stream, count, (const int64_t *const *)from, sources, (int64_t *const *)to,
                                destination_count);
    case SLC_FLOAT64:
        return slc_reduce_float64(&comm->stream, count, (const double *const *)from, sources, (double *const *)to,
                                  destination_count);
    default: return slc_error(SLUICE_ERR_UNSUPPORTED, "sums of %s", slc_dtype_name(op->dtype));
    }
}

/* Fills comm->sources for elements [offset, ...) of this rank's part of a block. */
static void find_sources(slc_comm *comm, const slc_active_op *run, uint64_t block, uint64_t offset)
{
    const slc_op *op = &run->op;
    uint64_t bytes = slc_dtype_size(op->dtype);
    uint64_t begin = slc_part_begin(op, SLC_WHOLE, block, comm->rank, comm->size) + offset;
    const char *own = (const char *)op->src + begin * bytes;
    for (int rank = 0; rank < comm->size; rank++) {
        if (rank == comm->rank)
            comm->sources[rank] = own;
        else if (slc_is_neighbour(comm->neighbours, rank))
            comm->sources[rank] = slc_at_neighbour(comm, rank, own);
        else
            comm->sources[rank] = slc_scratch_part(comm, run, block, rank) + offset * bytes;
    }
}

static uint32_t find_destinations(slc_comm *comm, const slc_active_op *run, uint64_t block, uint64_t offset)
{
    const slc_op *op = &run->op;
    uint64_t begin = slc_part_begin(op, op->dst_layout, block, comm->rank, comm->size) + offset;
    char *own = (char *)op->dst + begin * slc_dtype_size(slc_op_result(op));
    uint32_t count = 0;
    comm->destinations[count++] = own;
    if (op->kind != SLC_ALL_REDUCE) return count;
    for (int i = 0; i < comm->neighbours->count; i++)
        comm->destinations[count++] = slc_at_neighbour(comm, comm->neighbours->list[i], own);
    return count;
}

/* The sum of one, in place, times one. */
static bool nothing_to_add(const slc_comm *comm, const slc_op *op)
{
    bool scaled = (op->dtype == SLC_FLOAT32 || op->dtype == SLC_BFLOAT16) && op->scale != 1.0f;
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
    uint64_t chunk = comm->chunk_bytes / slc_dtype_size(run->op.dtype);
    uint64_t count = part - run->offset < chunk ? part - run->offset : chunk;
    find_sources(comm, run, run->block, run->offset);
    uint32_t destinations = find_destinations(comm, run, run->block, run->offset);
    sluice_status status = call_reduce(comm, &run->op, count, destinations);
    if (status) {
        fail_kernel(comm, run, status);
        return true;
    }
    run->offset += count;
    if (run->offset < part) return true;
    slc_messages_reduced(comm, run, run->block);
    run->offset = 0;
    run->work_done = ++run->block == run->end_block;
    return true;
}

/* Copies one chunk of `length` elements at `begin` (of src and dst). True when the last one was copied. */
static bool copy_chunk(slc_comm *comm, slc_active_op *run, const char *src, char *dst, uint64_t length)
{
    uint64_t bytes = slc_dtype_size(run->op.dtype), chunk = comm->chunk_bytes / bytes;
    uint64_t count = length - run->offset < chunk ? length - run->offset : chunk;
    sluice_status status =
        src == dst ? SLUICE_OK
                   : slc_copy(&comm->stream, dst + run->offset * bytes, src + run->offset * bytes, count * bytes);
    if (status) fail_kernel(comm, run, status);
    run->offset += src == dst ? length - run->offset : count;
    if (run->offset < length) return false;
    run->offset = 0;
    return true;
}

/* Step 0 is the own part, step i that of the i-th rank after this one: not everybody reads from the same one. */
static void gather_step(slc_comm *comm, slc_active_op *run)
{
    const slc_op *op = &run->op;
    uint64_t bytes = slc_dtype_size(op->dtype);
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

/* What every rank says about the own chunk of the tensor at work. */
static void find_packets(slc_comm *comm, const slc_active_op *run)
{
    const slc_op *op = &run->op;
    const uint64_t offset = op->group->offsets[run->tensor];
    const char *own = (const char *)op->src + slc_part_begin(op, SLC_WHOLE, 0, comm->rank, comm->size) + offset;
    for (int rank = 0; rank < comm->size; rank++)
        comm->sources[rank] = rank == comm->rank ? own
                              : slc_is_neighbour(comm->neighbours, rank)
                                  ? slc_at_neighbour(comm, rank, own)
                                  : slc_messages_packet(comm, run, rank) + offset;
}

static sluice_status push(slc_comm *comm, char *own, uint64_t bytes)
{
    sluice_status status = SLUICE_OK;
    for (int i = 0; bytes && !status && i < comm->neighbours->count; i++)
        status = slc_copy(&comm->stream, slc_at_neighbour(comm, comm->neighbours->list[i], own), own, bytes);
    return status;
}

/* About `most` elements of the own chunk of the tensor at work, whole blocks of scales. *whole: it took just this
 * piece, and who calls pushes its packet. Else the bits are pushed at once and the scales with the last piece. */
static sluice_status serve_piece(slc_comm *comm, slc_active_op *run, char *packet, uint64_t most, uint64_t *count,
                                 bool *whole)
{
    const slc_compress_shape *shape = &run->op.group->shapes[run->tensor];
    const slc_residue *server = &run->op.servers[run->tensor];
    const uint64_t chunk = slc_compress_chunk(shape), scales_bytes = slc_compress_scales(shape) * sizeof(float);
    const uint64_t unit = shape->scale_elements ? shape->scale_elements : 64, first = run->offset;
    const uint64_t left = chunk - first, piece = (most + unit - 1) / unit * unit;
    *count = left < piece ? left : piece;
    *whole = *count == chunk;
    find_packets(comm, run);
    sluice_status status =
        slc_compress_server(&comm->stream, shape, comm->sources, first, *count, server, run->bins, packet);
    if (!status && !*whole) status = push(comm, packet + scales_bytes + first / 8, *count / 8);
    run->offset += *count;
    if (status || run->offset < chunk) return status;
    slc_compress_server_end(shape, server, run->bins, packet);
    memset(run->bins, 0, sizeof run->bins);
    run->offset = 0, run->tensor++;
    return *whole ? SLUICE_OK : push(comm, packet, scales_bytes);
}

/* As many tensors, or as much of one, as make a piece of work. Those done whole go to every neighbour in one go. */
static sluice_status serve_some(slc_comm *comm, slc_active_op *run)
{
    const slc_compress_group *group = run->op.group;
    char *packets = (char *)run->op.dst + slc_part_begin(&run->op, SLC_WHOLE, 0, comm->rank, comm->size);
    uint64_t ready = group->offsets[run->tensor], end = ready, budget = comm->chunk_bytes / 8;
    sluice_status status = SLUICE_OK;
    while (!status && budget && run->tensor < group->count) {
        uint64_t count, begin = end;
        bool whole;
        status = serve_piece(comm, run, packets + begin, budget, &count, &whole);
        budget -= count + tensor_cost < budget ? count + tensor_cost : budget;
        end = run->tensor < group->count ? group->offsets[run->tensor] : group->packet_bytes;
        if (status || whole) continue;
        status = push(comm, packets + ready, begin - ready);
        ready = end;
    }
    return status ? status : push(comm, packets + ready, end - ready);
}

static bool exchange_step(slc_comm *comm, slc_active_op *run)
{
    if (!run->tensor && !run->offset && !slc_messages_arrived(comm, run, 0)) return false;
    sluice_status status = serve_some(comm, run);
    if (status) {
        fail_kernel(comm, run, status);
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
    char *own = (char *)op->dst + run->block * op->block_elements * slc_dtype_size(op->dtype);
    if (!copy_chunk(comm, run, slc_at_neighbour(comm, op->root, own), own, slc_block_length(op, run->block))) return;
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
