/* The bytes of the attached arena that operations touch. collectives_test.c covers this file. */
#include "lib/comm/lane/spans.h"

#include "lib/comm/lane/geometry.h"

/* This limit was measured on a processor with 32 MiB of last-level cache, and on one with 105 MiB that other machines
 * shared. Below it, storing results past the cache makes an operation whose buffers are in the cache take up to three
 * times as long; above it, up to a third less. */
static const uint64_t kept_by_cache = 32 << 20;

uint64_t slc_comm_exchange_bytes(const slc_comm *comm, const slc_compress_group *group)
{
    return (comm->any_messages || comm->stream_order.on ? 2 : 1) * group->shapes[0].ranks * group->stride;
}

bool slc_in_arena(const slc_comm *comm, const void *buffer, uint64_t bytes)
{
    const char *low = buffer;
    return low >= comm->attached.base && bytes <= comm->attached.bytes &&
           (uint64_t)(low - comm->attached.base) <= comm->attached.bytes - bytes;
}

static slc_byte_range range_of(const void *buffer, uint64_t bytes)
{
    return (slc_byte_range){buffer, (const char *)buffer + bytes};
}

static slc_spans row_op_spans(const slc_comm *comm, const slc_op *op)
{
    const slc_rows *rows = op->rows;
    const slc_layout layout = slc_gathers(op) ? op->src_layout : op->dst_layout;
    const uint64_t table = op->elements / (layout == SLC_SHARD ? (uint64_t)comm->size : 1);
    const uint64_t compact = rows->most * rows->row_elements;
    return (slc_spans){
        .read = range_of(op->src, (slc_gathers(op) ? table : compact) * sluice_dtype_bytes(op->dtype)),
        .write = {range_of(op->dst, (slc_gathers(op) ? compact : table) * sluice_dtype_bytes(slc_op_result(op))),
                  range_of(rows->lists, (uint64_t)comm->size * slc_row_list_bytes(rows->most))}};
}

static slc_byte_range buffer_span(const slc_op *op, const void *buffer, sluice_dtype dtype, slc_layout layout, int size)
{
    if (!buffer || op->kind == SLC_BARRIER) return (slc_byte_range){0};
    uint64_t bytes = sluice_dtype_bytes(dtype), share = layout == SLC_SHARD ? (uint64_t)size : 1;
    const char *low = (const char *)buffer + op->first_block * op->block_elements / share * bytes;
    return (slc_byte_range){low, low + slc_op_length(op) / share * bytes};
}

slc_spans slc_op_spans(const slc_comm *comm, const slc_op *op)
{
    if (slc_moves_rows(op)) return row_op_spans(comm, op);
    slc_spans spans = {.read = buffer_span(op, op->src, op->dtype, op->src_layout, comm->size),
                       .write = {buffer_span(op, op->dst, slc_op_result(op), op->dst_layout, comm->size)}};
    if (op->kind == SLC_COMPRESSED_EXCHANGE)
        spans.write[0].high = spans.write[0].low + slc_comm_exchange_bytes(comm, op->group);
    return spans;
}

bool slc_exceeds_cache(uint64_t bytes)
{
    return bytes > kept_by_cache;
}

/* An all-reduce writes where it has just read, so its lines are in the cache anyhow. */
bool slc_op_goes_past_cache(const slc_comm *comm, const slc_op *op)
{
    const bool reduces = op->kind == SLC_REDUCE_SCATTER && op->src != op->dst && !op->accumulate;
    if (!reduces && op->kind != SLC_ALL_GATHER && op->kind != SLC_BROADCAST) return false;
    const uint64_t whole = slc_op_length(op), part = whole / (uint64_t)comm->size;
    const uint64_t read = reduces ? whole : op->src == op->dst ? 0 : part, written = reduces ? part : whole;
    const uint64_t bytes = read * sluice_dtype_bytes(op->dtype) + written * sluice_dtype_bytes(slc_op_result(op));
    return slc_exceeds_cache(bytes * ((uint64_t)comm->neighbours->count + 1));
}
