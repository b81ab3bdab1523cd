/* Operations on rows: their chunks and the copying and adding. Which elements go from whom to whom follows from the
 * lists alone, so nothing is kept but where the chunks in flight are cut. */
#include "lib/comm/lane/rows.h"

#include "lib/base/status.h"
#include "lib/comm/lane/row_walk.h"
#include "lib/kernels/reduce/reduce.h"

#include <stdlib.h>

/* What one rank's list has of the part of the table at work. */
struct slc_row_cursor {
    slc_row_walk walk;
    slc_piece piece;
    bool any;
    uint64_t taken; /* elements of its message */
};

sluice_status slc_row_op_init(slc_comm *comm)
{
    const size_t size = (size_t)comm->size;
    comm->row_cursors = calloc(size, sizeof *comm->row_cursors);
    comm->row_room = calloc(size, sizeof *comm->row_room);
    comm->row_cuts = calloc(SLC_ACTIVE * (comm->depth + 1) * size, sizeof *comm->row_cuts);
    if (comm->row_cursors && comm->row_room && comm->row_cuts) return SLUICE_OK;
    return slc_error(SLUICE_ERR_MEMORY, "rows of %d ranks", comm->size);
}

void slc_row_op_fini(slc_comm *comm)
{
    free(comm->row_cursors);
    free(comm->row_room);
    free(comm->row_cuts);
}

uint64_t slc_row_op_elements(const slc_comm *comm, const slc_op *op, int holder, int owner, uint64_t from, uint64_t end)
{
    slc_row_walk walk = slc_row_walk_begin(op, slc_row_op_list_of(op, holder), comm->size, from, end);
    slc_piece piece;
    uint64_t elements = 0;
    while (slc_row_walk_next_of(&walk, owner, &piece)) elements += piece.length;
    return elements;
}

/* ---- Chunks ---- */

/* Where they end, for each owner. */
static uint64_t *cuts_of(const slc_comm *comm, const slc_active_op *run, uint64_t chunk)
{
    const uint64_t row = (run->index % SLC_ACTIVE) * (comm->depth + 1) + chunk % (comm->depth + 1);
    return comm->row_cuts + row * (uint64_t)comm->size;
}

/* Of a message. */
static uint64_t most_bytes(const slc_comm *comm)
{
    const uint64_t half = slc_scratch_part_bytes(comm) / 2;
    return slc_least(half, comm->chunk_bytes) / 32 * 32;
}

static uint64_t highest(const uint64_t *values, int count)
{
    uint64_t high = 0;
    for (int i = 0; i < count; i++)
        if (values[i] > high) high = values[i];
    return high;
}

/* Lowers cuts to where a rank's list has filled a message. *open: owners that no list has filled one for. */
static void cut_by_list(slc_comm *comm, const slc_op *op, int holder, const uint64_t *from, uint64_t *cuts, int *open)
{
    uint64_t end = *open ? op->elements : highest(cuts, comm->size), low = highest(from, comm->size);
    for (int owner = 0; owner < comm->size; owner++) {
        comm->row_room[owner] = most_bytes(comm) / slc_dtype_size(op->dtype);
        low = slc_least(low, from[owner]);
    }
    slc_row_walk walk = slc_row_walk_begin(op, slc_row_op_list_of(op, holder), comm->size, low, end);
    slc_piece piece;
    while (walk.at < end && slc_row_walk_next(&walk, &piece)) {
        const uint64_t piece_end = piece.at + piece.length, begin = from[piece.owner];
        const uint64_t at = piece.at > begin ? piece.at : begin, cut = cuts[piece.owner];
        uint64_t *room = &comm->row_room[piece.owner];
        if (piece_end <= at || at >= cut) continue;
        if (piece_end - at <= *room) {
            *room -= piece_end - at;
            continue;
        }
        cuts[piece.owner] = slc_least(cut, at + *room);
        if (cut == op->elements && --*open == 0) end = highest(cuts, comm->size);
    }
}

bool slc_row_op_cut(slc_comm *comm, slc_active_op *run)
{
    const uint64_t chunk = run->receiving;
    uint64_t *from = cuts_of(comm, run, chunk - 1), *cuts = cuts_of(comm, run, chunk);
    int open = 0;
    for (int owner = 0; owner < comm->size; owner++) {
        if (chunk == 1) from[owner] = 0;
        open += from[owner] < run->op.elements;
        cuts[owner] = run->op.elements;
    }
    if (!open) {
        run->open = false;
        return false;
    }
    for (int holder = 0; holder < comm->size; holder++) cut_by_list(comm, &run->op, holder, from, cuts, &open);
    run->end_block = chunk + 1;
    return true;
}

/* Elements that `holder`'s list has of a chunk of `owner`'s part. */
static uint64_t chunk_elements(const slc_comm *comm, const slc_active_op *run, uint64_t chunk, int holder, int owner)
{
    return slc_row_op_elements(comm, &run->op, holder, owner, cuts_of(comm, run, chunk - 1)[owner],
                               cuts_of(comm, run, chunk)[owner]);
}

uint64_t slc_row_op_expected(const slc_comm *comm, const slc_active_op *run, uint64_t chunk, int peer)
{
    const bool gather = slc_gathers(&run->op);
    return chunk_elements(comm, run, chunk, gather ? comm->rank : peer, gather ? peer : comm->rank) *
           slc_dtype_size(run->op.dtype);
}

/* ---- Moving ---- */

/* A piece among the rows of a list. */
static char *row_place(const slc_op *op, const void *buffer, slc_dtype dtype, const slc_row_list *list,
                       const slc_piece *piece)
{
    const uint64_t columns = op->rows->row_elements, row = list->rows[piece->index] * columns;
    return (char *)(uintptr_t)buffer + (piece->index * columns + piece->at - row) * slc_dtype_size(dtype);
}

/* A piece in the table or its owner's part of it. */
static char *table_place(const slc_comm *comm, const slc_op *op, const void *buffer, slc_layout layout, slc_dtype dtype,
                         const slc_piece *piece)
{
    const uint64_t block = piece->at / op->block_elements;
    const uint64_t inside = piece->at - slc_part_begin(op, SLC_WHOLE, block, piece->owner, comm->size);
    const uint64_t at = slc_part_begin(op, layout, block, piece->owner, comm->size) + inside;
    return (char *)(uintptr_t)buffer + at * slc_dtype_size(dtype);
}

static void fail(slc_comm *comm, const slc_active_op *run, sluice_status status)
{
    slc_failure_set(comm->failure, status, SLC_TELL_OWN, "%s: %s", run->op.what ? run->op.what : "operation",
                    sluice_last_error());
}

const char *slc_row_op_pack(slc_comm *comm, slc_active_op *run, uint64_t chunk, int peer, uint64_t *bytes)
{
    const slc_op *op = &run->op;
    const int holder = slc_gathers(op) ? peer : comm->rank, owner = slc_gathers(op) ? comm->rank : peer;
    const slc_row_list *list = slc_row_op_list_of(op, holder);
    char *packed = slc_scratch_part(comm, run, chunk, peer) + slc_scratch_part_bytes(comm) / 2;
    slc_row_walk walk = slc_row_walk_begin(op, list, comm->size, cuts_of(comm, run, chunk - 1)[owner],
                                           cuts_of(comm, run, chunk)[owner]);
    slc_piece piece;
    sluice_status status = SLUICE_OK;
    *bytes = 0;
    while (!status && slc_row_walk_next_of(&walk, owner, &piece)) {
        const char *src = slc_gathers(op) ? table_place(comm, op, op->src, op->src_layout, op->dtype, &piece)
                                          : row_place(op, op->src, op->dtype, list, &piece);
        const uint64_t length = piece.length * slc_dtype_size(op->dtype);
        status = slc_copy(&comm->stream, packed + *bytes, src, length);
        *bytes += length;
    }
    if (status) fail(comm, run, status);
    return packed;
}

static sluice_status unpack(slc_comm *comm, slc_active_op *run, int owner)
{
    const slc_op *op = &run->op;
    const slc_row_list *list = slc_row_op_list_of(op, comm->rank);
    const char *packed = slc_scratch_part(comm, run, run->block, owner);
    slc_row_walk walk = slc_row_walk_begin(op, list, comm->size, cuts_of(comm, run, run->block - 1)[owner],
                                           cuts_of(comm, run, run->block)[owner]);
    slc_piece piece;
    sluice_status status = SLUICE_OK;
    while (!status && slc_row_walk_next_of(&walk, owner, &piece)) {
        const uint64_t length = piece.length * slc_dtype_size(op->dtype);
        status = slc_copy(&comm->stream, row_place(op, op->dst, op->dtype, list, &piece), packed, length);
        packed += length;
    }
    return status;
}

/* About a chunk of what lies here and with neighbours. */
static sluice_status copy_some(slc_comm *comm, slc_active_op *run)
{
    const slc_op *op = &run->op;
    const slc_row_list *list = slc_row_op_list_of(op, comm->rank);
    slc_row_walk walk = slc_row_walk_begin(op, list, comm->size, run->offset, op->elements);
    slc_piece piece;
    uint64_t left = comm->chunk_bytes / slc_dtype_size(op->dtype);
    sluice_status status = SLUICE_OK;
    while (left && !status && slc_row_walk_next(&walk, &piece)) {
        const bool own = piece.owner == comm->rank;
        if (!own && !slc_is_neighbour(comm->neighbours, piece.owner)) continue;
        piece.length = slc_least(piece.length, left);
        const char *src = table_place(comm, op, op->src, op->src_layout, op->dtype, &piece);
        if (!own) src = slc_at_neighbour(comm, piece.owner, src);
        status = slc_copy(&comm->stream, row_place(op, op->dst, op->dtype, list, &piece), src,
                          piece.length * slc_dtype_size(op->dtype));
        left -= piece.length;
        run->offset = piece.at + piece.length;
    }
    if (left) run->offset = op->elements;
    return status;
}

static const void *source_of(slc_comm *comm, const slc_active_op *run, int holder)
{
    const slc_op *op = &run->op;
    const struct slc_row_cursor *cursor = &comm->row_cursors[holder];
    const bool own = holder == comm->rank;
    if (!own && !slc_is_neighbour(comm->neighbours, holder))
        return slc_scratch_part(comm, run, run->block, holder) + cursor->taken * slc_dtype_size(op->dtype);
    const char *src = row_place(op, op->src, op->dtype, slc_row_op_list_of(op, holder), &cursor->piece);
    return own ? src : slc_at_neighbour(comm, holder, src);
}

/* Adds one piece of the own part: `first`, which the lowest rank that has it is at. Its sources are in rank order. */
static sluice_status add_piece(slc_comm *comm, const slc_active_op *run, const slc_piece *first)
{
    const slc_op *op = &run->op;
    uint32_t count = 0;
    for (int rank = 0; rank < comm->size; rank++) {
        struct slc_row_cursor *cursor = &comm->row_cursors[rank];
        if (!cursor->any || cursor->piece.at != first->at) continue;
        comm->sources[count++] = source_of(comm, run, rank);
        cursor->taken += first->length;
    }
    comm->destinations[0] = table_place(comm, op, op->dst, op->dst_layout, slc_op_result(op), first);
    return slc_reduce(&comm->stream, first->length, slc_float_type(op->dtype), comm->sources, count, op->scale, true,
                      slc_float_type(slc_op_result(op)), comm->destinations, 1, false);
}

/* The piece that is next in the table, of those that ranks' lists are at; NULL: none is left. */
static const slc_piece *next_of_all(const slc_comm *comm)
{
    const slc_piece *next = NULL;
    for (int rank = 0; rank < comm->size; rank++) {
        const struct slc_row_cursor *cursor = &comm->row_cursors[rank];
        if (cursor->any && (!next || cursor->piece.at < next->at)) next = &cursor->piece;
    }
    return next;
}

/* Adds up [run->offset, end) of the own part, about `most` elements of it. */
static sluice_status add_some(slc_comm *comm, slc_active_op *run, uint64_t end, uint64_t most)
{
    for (int rank = 0; rank < comm->size; rank++) {
        struct slc_row_cursor *cursor = &comm->row_cursors[rank];
        cursor->walk = slc_row_walk_begin(&run->op, slc_row_op_list_of(&run->op, rank), comm->size, run->offset, end);
        cursor->any = slc_row_walk_next_of(&cursor->walk, comm->rank, &cursor->piece);
        cursor->taken = 0;
    }
    sluice_status status = SLUICE_OK;
    for (const slc_piece *next; most && !status && (next = next_of_all(comm));) {
        const slc_piece piece = {next->index, next->owner, next->at, slc_least(next->length, most)};
        status = add_piece(comm, run, &piece);
        run->offset = piece.at + piece.length;
        most -= piece.length;
        for (int rank = 0; rank < comm->size; rank++) {
            struct slc_row_cursor *cursor = &comm->row_cursors[rank];
            if (cursor->any && cursor->piece.at == piece.at)
                cursor->any = slc_row_walk_next_of(&cursor->walk, comm->rank, &cursor->piece);
        }
    }
    if (most) run->offset = end;
    return status;
}

/* ---- Work ---- */

static bool chunk_arrived(slc_comm *comm, slc_active_op *run)
{
    return comm->message_peer_count && slc_messages_arrived(comm, run, run->block);
}

static void end_chunk(slc_comm *comm, slc_active_op *run)
{
    slc_messages_reduced(comm, run, run->block);
    run->block++;
}

static sluice_status gather_some(slc_comm *comm, slc_active_op *run)
{
    if (!chunk_arrived(comm, run)) return copy_some(comm, run);
    sluice_status status = SLUICE_OK;
    for (int i = 0; i < comm->message_peer_count && !status; i++) status = unpack(comm, run, comm->message_peers[i]);
    end_chunk(comm, run);
    return status;
}

static sluice_status reduce_some(slc_comm *comm, slc_active_op *run)
{
    if (!comm->message_peer_count)
        return add_some(comm, run, run->op.elements, comm->chunk_bytes / slc_dtype_size(run->op.dtype));
    sluice_status status = add_some(comm, run, cuts_of(comm, run, run->block)[comm->rank], UINT64_MAX);
    end_chunk(comm, run);
    return status;
}

bool slc_row_op_work(slc_comm *comm, slc_active_op *run)
{
    const bool gather = slc_gathers(&run->op), direct_left = run->offset < run->op.elements;
    const bool chunks_left = comm->message_peer_count && (run->open || run->block < run->end_block);
    run->work_done = !chunks_left && !direct_left;
    if (run->work_done) return true;
    if (!chunk_arrived(comm, run) && !(direct_left && (gather || !comm->message_peer_count))) return false;
    sluice_status status = gather ? gather_some(comm, run) : reduce_some(comm, run);
    if (status) fail(comm, run, status);
    return true;
}
