/* Pieces: a list's rows are cut where the parts of a table are cut, so that each piece lies in one row and has one
 * owner. Positions and lengths are elements of the whole layout. */
#pragma once

#include "lib/base/integer.h"
#include "lib/comm/lane/geometry.h"

typedef struct {
    uint32_t index; /* of its row in the list */
    int owner;
    uint64_t at, length;
} slc_piece;

typedef struct {
    const slc_op *op;
    const slc_row_list *list;
    int size;
    uint32_t next;    /* index in the list of the row at which the walk is */
    uint64_t at, end; /* where the walk is, and where it stops */
} slc_row_walk;

/* Begins a walk through those elements of [from, end) whose rows the list names. */
static inline slc_row_walk slc_row_walk_begin(const slc_op *op, const slc_row_list *list, int size, uint64_t from,
                                              uint64_t end)
{
    const uint64_t row = from / op->rows->row_elements;
    uint32_t low = 0, high = list->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (list->rows[middle] < row)
            low = middle + 1;
        else
            high = middle;
    }
    return (slc_row_walk){.op = op, .list = list, .size = size, .next = low, .at = from, .end = end};
}

/* Steps to the next piece; false: there is none. */
static inline bool slc_row_walk_next(slc_row_walk *walk, slc_piece *out)
{
    if (walk->next == walk->list->count) return false;
    const slc_op *op = walk->op;
    const uint64_t row = walk->list->rows[walk->next] * op->rows->row_elements, row_end = row + op->rows->row_elements;
    const uint64_t at = row > walk->at ? row : walk->at;
    if (at >= walk->end) return false;
    const uint32_t owner = slc_owner_of(op->elements, op->block_elements, (uint32_t)walk->size, at);
    const slc_part part =
        slc_part_of_rank(op->elements, op->block_elements, at / op->block_elements, (uint32_t)walk->size, owner);
    const uint64_t end = slc_least(slc_least(row_end, part.first + part.count), walk->end);
    *out = (slc_piece){.index = walk->next, .owner = (int)owner, .at = at, .length = end - at};
    walk->at = end;
    walk->next += end == row_end;
    return true;
}

/* Steps to the next piece that belongs to `owner`; false: there is none. */
static inline bool slc_row_walk_next_of(slc_row_walk *walk, int owner, slc_piece *out)
{
    while (slc_row_walk_next(walk, out))
        if (out->owner == owner) return true;
    return false;
}

/* The place that a walk has reached in one rank's list, for the part of the table at work. */
struct slc_row_cursor {
    slc_row_walk walk;
    slc_piece piece;
    bool any;
    uint64_t taken; /* elements of the message from that rank that have been used */
};

/* Returns the address of a piece in a buffer of the list's rows. */
static inline char *slc_row_place(const slc_op *op, const void *buffer, sluice_dtype dtype, const slc_row_list *list,
                                  const slc_piece *piece)
{
    const uint64_t columns = op->rows->row_elements, row = list->rows[piece->index] * columns;
    return (char *)(uintptr_t)buffer + (piece->index * columns + piece->at - row) * sluice_dtype_bytes(dtype);
}

/* Returns the address of a piece in the table (whole layout) or in its owner's part of the table (shard layout). */
static inline char *slc_table_place(const slc_comm *comm, const slc_op *op, const void *buffer, slc_layout layout,
                                    sluice_dtype dtype, const slc_piece *piece)
{
    const uint64_t block = piece->at / op->block_elements;
    const uint64_t inside = piece->at - slc_part_begin(op, SLC_WHOLE, block, piece->owner, comm->size);
    const uint64_t at = slc_part_begin(op, layout, block, piece->owner, comm->size) + inside;
    return (char *)(uintptr_t)buffer + at * sluice_dtype_bytes(dtype);
}
