/* The copying and adding of operations on rows, about a chunk of work at a time. rows_test.c covers this file. */
#include "lib/comm/lane/rows/rows_work.h"

#include "lib/comm/lane/messages.h"
#include "lib/comm/lane/rows/row_chunks.h"
#include "lib/comm/lane/rows/row_walk.h"
#include "lib/comm/lane/scratch.h"
#include "lib/kernels/reduce/reduce.h"

static sluice_status unpack_chunk(slc_comm *comm, slc_active_op *active, int owner)
{
    const slc_op *op = &active->op;
    const slc_row_list *list = slc_row_op_list_of(op, comm->rank);
    const char *packed = slc_scratch_part(comm, active, active->block, owner);
    slc_row_walk walk =
        slc_row_walk_begin(op, list, comm->size, slc_row_op_cuts(comm, active, active->block - 1)[owner],
                           slc_row_op_cuts(comm, active, active->block)[owner]);
    slc_piece piece;
    sluice_status status = SLUICE_OK;
    while (!status && slc_row_walk_next_of(&walk, owner, &piece)) {
        const uint64_t length = piece.length * sluice_dtype_bytes(op->dtype);
        status = slc_copy(&comm->attached.stream, slc_row_place(op, op->dst, op->dtype, list, &piece), packed, length);
        packed += length;
    }
    return status;
}

/* Copies about a chunk of the rows that lie with this rank and its neighbours. */
static sluice_status copy_some(slc_comm *comm, slc_active_op *active)
{
    const slc_op *op = &active->op;
    const slc_row_list *list = slc_row_op_list_of(op, comm->rank);
    slc_row_walk walk = slc_row_walk_begin(op, list, comm->size, active->offset, op->elements);
    slc_piece piece;
    uint64_t left = comm->work.chunk_bytes / sluice_dtype_bytes(op->dtype);
    sluice_status status = SLUICE_OK;
    while (left && !status && slc_row_walk_next(&walk, &piece)) {
        const bool own = piece.owner == comm->rank;
        if (!own && !slc_is_neighbour(comm->neighbours, piece.owner)) continue;
        piece.length = slc_least(piece.length, left);
        const char *src = slc_table_place(comm, op, op->src, op->src_layout, op->dtype, &piece);
        if (!own) src = slc_at_neighbour(comm, piece.owner, src);
        status = slc_copy(&comm->attached.stream, slc_row_place(op, op->dst, op->dtype, list, &piece), src,
                          piece.length * sluice_dtype_bytes(op->dtype));
        left -= piece.length;
        active->offset = piece.at + piece.length;
    }
    if (left) active->offset = op->elements;
    return status;
}

static const void *source_of(slc_comm *comm, const slc_active_op *active, int holder)
{
    const slc_op *op = &active->op;
    const struct slc_row_cursor *cursor = &comm->rows.cursors[holder];
    const bool own = holder == comm->rank;
    if (!own && !slc_is_neighbour(comm->neighbours, holder))
        return slc_scratch_part(comm, active, active->block, holder) + cursor->taken * sluice_dtype_bytes(op->dtype);
    const char *src = slc_row_place(op, op->src, op->dtype, slc_row_op_list_of(op, holder), &cursor->piece);
    return own ? src : slc_at_neighbour(comm, holder, src);
}

/* Adds up one piece of this rank's part, with its sources in rank order. `first` is the piece as the lowest rank that
 * has it gives it. */
static sluice_status add_piece(slc_comm *comm, const slc_active_op *active, const slc_piece *first)
{
    const slc_op *op = &active->op;
    uint32_t count = 0;
    for (int rank = 0; rank < comm->size; rank++) {
        struct slc_row_cursor *cursor = &comm->rows.cursors[rank];
        if (!cursor->any || cursor->piece.at != first->at) continue;
        comm->work.sources[count++] = source_of(comm, active, rank);
        cursor->taken += first->length;
    }
    comm->work.destinations[0] = slc_table_place(comm, op, op->dst, op->dst_layout, slc_op_result(op), first);
    const slc_reduce_args args = {.count = first->length,
                                  .from = op->dtype,
                                  .to = slc_op_result(op),
                                  .sources = comm->work.sources,
                                  .source_count = count,
                                  .destination_count = 1,
                                  .destinations = comm->work.destinations,
                                  .scale = op->scale,
                                  .accumulate = true};
    return slc_reduce(&comm->attached.stream, &args);
}

/* Returns the piece that comes first in the table, among the pieces that the ranks' lists have reached; NULL: none is
 * left. */
static const slc_piece *next_of_all(const slc_comm *comm)
{
    const slc_piece *next = NULL;
    for (int rank = 0; rank < comm->size; rank++) {
        const struct slc_row_cursor *cursor = &comm->rows.cursors[rank];
        if (cursor->any && (!next || cursor->piece.at < next->at)) next = &cursor->piece;
    }
    return next;
}

/* Adds up about `most` elements of this rank's part, from [active->offset, end). */
static sluice_status add_some(slc_comm *comm, slc_active_op *active, uint64_t end, uint64_t most)
{
    for (int rank = 0; rank < comm->size; rank++) {
        struct slc_row_cursor *cursor = &comm->rows.cursors[rank];
        cursor->walk =
            slc_row_walk_begin(&active->op, slc_row_op_list_of(&active->op, rank), comm->size, active->offset, end);
        cursor->any = slc_row_walk_next_of(&cursor->walk, comm->rank, &cursor->piece);
        cursor->taken = 0;
    }
    sluice_status status = SLUICE_OK;
    for (const slc_piece *next; most && !status && (next = next_of_all(comm));) {
        const slc_piece piece = {next->index, next->owner, next->at, slc_least(next->length, most)};
        status = add_piece(comm, active, &piece);
        active->offset = piece.at + piece.length;
        most -= piece.length;
        for (int rank = 0; rank < comm->size; rank++) {
            struct slc_row_cursor *cursor = &comm->rows.cursors[rank];
            if (cursor->any && cursor->piece.at == piece.at)
                cursor->any = slc_row_walk_next_of(&cursor->walk, comm->rank, &cursor->piece);
        }
    }
    if (most) active->offset = end;
    return status;
}

/* ---- Work ---- */

static bool chunk_arrived(slc_comm *comm, slc_active_op *active)
{
    return comm->messages.peer_count && slc_messages_arrived(comm, active, active->block);
}

static void end_chunk(slc_comm *comm, slc_active_op *active)
{
    slc_messages_reduced(comm, active, active->block);
    active->block++;
}

static sluice_status gather_some(slc_comm *comm, slc_active_op *active)
{
    if (!chunk_arrived(comm, active)) return copy_some(comm, active);
    sluice_status status = SLUICE_OK;
    for (int i = 0; i < comm->messages.peer_count && !status; i++)
        status = unpack_chunk(comm, active, comm->messages.peers[i]);
    end_chunk(comm, active);
    return status;
}

static sluice_status reduce_some(slc_comm *comm, slc_active_op *active)
{
    if (!comm->messages.peer_count)
        return add_some(comm, active, active->op.elements,
                        comm->work.chunk_bytes / sluice_dtype_bytes(active->op.dtype));
    sluice_status status = add_some(comm, active, slc_row_op_cuts(comm, active, active->block)[comm->rank], UINT64_MAX);
    end_chunk(comm, active);
    return status;
}

bool slc_row_op_work(slc_comm *comm, slc_active_op *active)
{
    const bool gather = slc_gathers(&active->op), direct_left = active->offset < active->op.elements;
    const bool chunks_left = comm->messages.peer_count && (active->open || active->block < active->end_block);
    active->work_done = !chunks_left && !direct_left;
    if (active->work_done) return true;
    if (!chunk_arrived(comm, active) && !(direct_left && (gather || !comm->messages.peer_count))) return false;
    sluice_status status = gather ? gather_some(comm, active) : reduce_some(comm, active);
    if (status) slc_op_fail(comm, &active->op, status);
    return true;
}
