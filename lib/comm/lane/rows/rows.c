/* Operations on rows: they are made and checked here, and their lists exchanged. */
#include "lib/comm/lane/rows/rows.h"

#include "lib/base/status.h"
#include "lib/comm/lane/geometry.h"
#include "lib/comm/lane/messages.h"
#include "lib/comm/lane/rows/row_chunks.h"
#include "lib/comm/lane/signature.h"
#include "lib/comm/lane/spans.h"

#include <assert.h>

/* ---- Checks ---- */

static uint64_t blocks_of(uint64_t elements, uint64_t block_elements)
{
    return block_elements ? (elements + block_elements - 1) / block_elements : 0;
}

static sluice_status check_shape(const slc_comm *comm, const slc_op *op)
{
    const slc_rows *rows = op->rows;
    const uint64_t blocks = blocks_of(op->elements, op->block_elements);
    if (!rows || !op->src || !op->dst || op->first_block || op->block_count != blocks)
        return slc_error(SLUICE_ERR_ARGUMENT, "%s: make it with slc_gather_rows_op or slc_reduce_rows_op",
                         slc_op_name(op));
    if (!rows->row_elements || rows->row_count > op->elements / rows->row_elements)
        return slc_error(SLUICE_ERR_ARGUMENT, "%s: %llu rows of %llu elements in a table of %llu", slc_op_name(op),
                         (unsigned long long)rows->row_count, (unsigned long long)rows->row_elements,
                         (unsigned long long)op->elements);
    if (rows->most > UINT32_MAX || rows->most > comm->attached.bytes / rows->row_elements ||
        (uintptr_t)rows->lists % 64)
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "%s: lists of at most %llu rows at %p; they lie in the attached arena, at a multiple of 64",
                         slc_op_name(op), (unsigned long long)rows->most, rows->lists);
    return SLUICE_OK;
}

static bool in_arena(const slc_comm *comm, slc_byte_range range)
{
    return slc_in_arena(comm, range.low, (uint64_t)(range.high - range.low));
}

sluice_status slc_row_op_check(const slc_comm *comm, const slc_op *op)
{
    if (!slc_gathers(op) && op->dtype != SLUICE_FP32 && op->dtype != SLUICE_BF16)
        return slc_error(SLUICE_ERR_UNSUPPORTED, "%s: sums of %s", slc_op_name(op), sluice_dtype_name(op->dtype));
    sluice_status status = check_shape(comm, op);
    if (status) return status;
    const slc_spans spans = slc_op_spans(comm, op);
    if (!in_arena(comm, spans.read) || !in_arena(comm, spans.write[0]) || !in_arena(comm, spans.write[1]))
        return slc_error(SLUICE_ERR_ARGUMENT, "%s: its buffers are not in the attached arena", slc_op_name(op));
    if (slc_ranges_overlap(spans.read, spans.write[0]) || slc_ranges_overlap(spans.read, spans.write[1]) ||
        slc_ranges_overlap(spans.write[0], spans.write[1]))
        return slc_error(SLUICE_ERR_ARGUMENT, "%s: table, rows and lists overlap", slc_op_name(op));
    return SLUICE_OK;
}

sluice_status slc_row_op_check_list(const slc_comm *comm, const slc_op *op, int rank)
{
    const slc_row_list *list = slc_row_op_list_of(op, rank);
    const int named = slc_rank_in_world(comm, rank);
    if (list->count > op->rows->most)
        return slc_error(SLUICE_ERR_FORMAT, "%s: rank %d's list has %u rows, more than the %llu that it may have",
                         slc_op_name(op), named, list->count, (unsigned long long)op->rows->most);
    for (uint32_t i = 0; i < list->count; i++) {
        if (list->rows[i] >= op->rows->row_count)
            return slc_error(SLUICE_ERR_FORMAT, "%s: rank %d's list names row %u of %llu, at place %u", slc_op_name(op),
                             named, list->rows[i], (unsigned long long)op->rows->row_count, i);
        if (i && list->rows[i] <= list->rows[i - 1])
            return slc_error(SLUICE_ERR_FORMAT, "%s: rank %d's list is not ascending: row %u after row %u, at place %u",
                             slc_op_name(op), named, list->rows[i], list->rows[i - 1], i);
    }
    return SLUICE_OK;
}

/* ---- Lists ---- */

/* Finds how many bytes messages between this rank and its neighbours would carry. */
static void find_direct_bytes(const slc_comm *comm, slc_active_op *active)
{
    const slc_op *op = &active->op;
    const slc_neighbours *neighbours = comm->neighbours;
    uint64_t owned = 0, held = 0; /* elements of their lists that this rank owns, of this rank's list that they own */
    for (int i = 0; i < neighbours->count; i++) {
        owned += slc_row_op_elements(comm, op, neighbours->list[i], comm->rank, 0, op->elements);
        held += slc_row_op_elements(comm, op, comm->rank, neighbours->list[i], 0, op->elements);
    }
    const uint64_t lists = (uint64_t)neighbours->count * slc_row_list_bytes(op->rows->most);
    const uint64_t bytes = sluice_dtype_bytes(op->dtype);
    active->direct_sent = lists + (slc_gathers(op) ? owned : held) * bytes;
    active->direct_received = lists + (slc_gathers(op) ? held : owned) * bytes;
}

static sluice_status take_lists(slc_comm *comm, const slc_op *op)
{
    sluice_status status = SLUICE_OK;
    for (int rank = 0; rank < comm->size && !status; rank++) {
        slc_row_list *list = slc_row_op_list_of(op, rank);
        if (rank != comm->rank && slc_is_neighbour(comm->neighbours, rank))
            status = slc_copy(&comm->attached.stream, list, slc_at_neighbour(comm, rank, list),
                              slc_row_list_bytes(op->rows->most));
        if (!status) status = slc_row_op_check_list(comm, op, rank);
    }
    return status;
}

bool slc_row_op_have_lists(slc_comm *comm, slc_active_op *active)
{
    if (!slc_messages_arrived(comm, active, 0) || !slc_peers_ready(comm, active)) return false;
    sluice_status status = take_lists(comm, &active->op);
    if (status) {
        slc_failure_set(comm->failure, status, SLC_TELL_OWN, "%s", sluice_last_error());
        return false;
    }
    find_direct_bytes(comm, active);
    active->block = 1;
    return true;
}

/* ---- Making them ---- */

static slc_op op_on_rows(slc_op_kind kind, const slc_rows *rows, sluice_dtype dtype, uint64_t elements,
                         uint64_t block_elements, const void *src, void *dst)
{
    return (slc_op){.kind = kind,
                    .dtype = dtype,
                    .elements = elements,
                    .block_elements = block_elements,
                    .block_count = blocks_of(elements, block_elements),
                    .src = src,
                    .dst = dst,
                    .rows = rows};
}

slc_op slc_gather_rows_op(const slc_rows *rows, sluice_dtype dtype, uint64_t elements, uint64_t block_elements,
                          const void *src, slc_layout src_layout, void *dst)
{
    slc_op op = op_on_rows(SLC_GATHER_ROWS, rows, dtype, elements, block_elements, src, dst);
    op.src_layout = src_layout;
    return op;
}

slc_op slc_reduce_rows_op(const slc_rows *rows, sluice_dtype dtype, sluice_dtype dst_dtype, uint64_t elements,
                          uint64_t block_elements, const void *src, void *dst, slc_layout dst_layout, float scale)
{
    assert(dst_dtype == dtype || dst_dtype == SLUICE_FP32);
    slc_op op = op_on_rows(SLC_REDUCE_ROWS, rows, dtype, elements, block_elements, src, dst);
    op.widen = dst_dtype != dtype;
    op.dst_layout = dst_layout;
    op.scale = scale;
    op.accumulate = true;
    return op;
}
