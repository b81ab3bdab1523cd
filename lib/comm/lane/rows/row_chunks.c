/* The chunks of operations on rows. The lists alone say which elements go from whom to whom, so nothing is
 * kept but the places where the chunks in flight are cut. rows_test.c covers this file. */
#include "lib/comm/lane/rows/row_chunks.h"

#include "lib/comm/lane/rows/row_walk.h"
#include "lib/comm/lane/scratch.h"

slc_row_list *slc_row_op_list_of(const slc_op *op, int rank)
{
    return (slc_row_list *)(void *)((char *)op->rows->lists + (uint64_t)rank * slc_row_list_bytes(op->rows->most));
}

uint64_t slc_row_op_elements(const slc_comm *comm, const slc_op *op, int holder, int owner, uint64_t from, uint64_t end)
{
    slc_row_walk walk = slc_row_walk_begin(op, slc_row_op_list_of(op, holder), comm->size, from, end);
    slc_piece piece;
    uint64_t elements = 0;
    while (slc_row_walk_next_of(&walk, owner, &piece)) elements += piece.length;
    return elements;
}

uint64_t *slc_row_op_cuts(const slc_comm *comm, const slc_active_op *active, uint64_t chunk)
{
    const uint64_t row = (active->index % SLC_ACTIVE) * (comm->depth + 1) + chunk % (comm->depth + 1);
    return comm->rows.cuts + row * (uint64_t)comm->size;
}

/* The most bytes that a message of a chunk may have. */
static uint64_t most_bytes(const slc_comm *comm)
{
    const uint64_t half = slc_scratch_part_bytes(comm) / 2;
    return slc_least(half, comm->work.chunk_bytes) / 32 * 32;
}

static uint64_t highest(const uint64_t *values, int count)
{
    uint64_t high = 0;
    for (int i = 0; i < count; i++)
        if (values[i] > high) high = values[i];
    return high;
}

/* Lowers cuts to where the list of `holder` has filled a message. *open counts the owners for which no list has filled
 * one. */
static void cut_by_list(slc_comm *comm, const slc_op *op, int holder, const uint64_t *from, uint64_t *cuts, int *open)
{
    uint64_t end = *open ? op->elements : highest(cuts, comm->size), low = highest(from, comm->size);
    for (int owner = 0; owner < comm->size; owner++) {
        comm->rows.room[owner] = most_bytes(comm) / sluice_dtype_bytes(op->dtype);
        low = slc_least(low, from[owner]);
    }
    slc_row_walk walk = slc_row_walk_begin(op, slc_row_op_list_of(op, holder), comm->size, low, end);
    slc_piece piece;
    while (walk.at < end && slc_row_walk_next(&walk, &piece)) {
        const uint64_t piece_end = piece.at + piece.length, begin = from[piece.owner];
        const uint64_t at = piece.at > begin ? piece.at : begin, cut = cuts[piece.owner];
        uint64_t *room = &comm->rows.room[piece.owner];
        if (piece_end <= at || at >= cut) continue;
        if (piece_end - at <= *room) {
            *room -= piece_end - at;
            continue;
        }
        cuts[piece.owner] = slc_least(cut, at + *room);
        if (cut == op->elements && --*open == 0) end = highest(cuts, comm->size);
    }
}

bool slc_row_op_cut(slc_comm *comm, slc_active_op *active)
{
    const uint64_t chunk = active->receiving;
    uint64_t *from = slc_row_op_cuts(comm, active, chunk - 1), *cuts = slc_row_op_cuts(comm, active, chunk);
    int open = 0;
    for (int owner = 0; owner < comm->size; owner++) {
        if (chunk == 1) from[owner] = 0;
        open += from[owner] < active->op.elements;
        cuts[owner] = active->op.elements;
    }
    if (!open) {
        active->open = false;
        return false;
    }
    for (int holder = 0; holder < comm->size; holder++) cut_by_list(comm, &active->op, holder, from, cuts, &open);
    active->end_block = chunk + 1;
    return true;
}

/* Elements of a chunk of `owner`'s part whose rows `holder`'s list names. */
static uint64_t chunk_elements(const slc_comm *comm, const slc_active_op *active, uint64_t chunk, int holder, int owner)
{
    return slc_row_op_elements(comm, &active->op, holder, owner, slc_row_op_cuts(comm, active, chunk - 1)[owner],
                               slc_row_op_cuts(comm, active, chunk)[owner]);
}

uint64_t slc_row_op_expected(const slc_comm *comm, const slc_active_op *active, uint64_t chunk, int peer)
{
    const bool gather = slc_gathers(&active->op);
    return chunk_elements(comm, active, chunk, gather ? comm->rank : peer, gather ? peer : comm->rank) *
           sluice_dtype_bytes(active->op.dtype);
}

const char *slc_row_op_pack(slc_comm *comm, slc_active_op *active, uint64_t chunk, int peer, uint64_t *bytes)
{
    const slc_op *op = &active->op;
    const int holder = slc_gathers(op) ? peer : comm->rank, owner = slc_gathers(op) ? comm->rank : peer;
    const slc_row_list *list = slc_row_op_list_of(op, holder);
    char *packed = slc_scratch_part(comm, active, chunk, peer) + slc_scratch_part_bytes(comm) / 2;
    slc_row_walk walk = slc_row_walk_begin(op, list, comm->size, slc_row_op_cuts(comm, active, chunk - 1)[owner],
                                           slc_row_op_cuts(comm, active, chunk)[owner]);
    slc_piece piece;
    sluice_status status = SLUICE_OK;
    *bytes = 0;
    while (!status && slc_row_walk_next_of(&walk, owner, &piece)) {
        const char *src = slc_gathers(op) ? slc_table_place(comm, op, op->src, op->src_layout, op->dtype, &piece)
                                          : slc_row_place(op, op->src, op->dtype, list, &piece);
        const uint64_t length = piece.length * sluice_dtype_bytes(op->dtype);
        status = slc_copy(&comm->attached.stream, packed + *bytes, src, length);
        *bytes += length;
    }
    if (status) slc_op_fail(comm, &active->op, status);
    return packed;
}
