/* The pieces that a list's rows fall into where the parts of a table are cut: each lies in one row and has one owner.
 * Positions and lengths are elements of the whole layout. */
#ifndef SLC_COMM_ROW_WALK_H
#define SLC_COMM_ROW_WALK_H

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
    uint32_t next;    /* the row at work */
    uint64_t at, end; /* where it is; where it stops */
} slc_row_walk;

/* Through what the list names of [from, end). */
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

static inline bool slc_row_walk_next(slc_row_walk *walk, slc_piece *out)
{
    if (walk->next == walk->list->count) return false;
    const slc_op *op = walk->op;
    const uint64_t row = walk->list->rows[walk->next] * op->rows->row_elements, row_end = row + op->rows->row_elements;
    const uint64_t at = row > walk->at ? row : walk->at;
    if (at >= walk->end) return false;
    const uint64_t block = at / op->block_elements, begin = block * op->block_elements;
    const uint64_t part = slc_block_length(op, block) / (uint64_t)walk->size, owner = (at - begin) / part;
    const uint64_t end = slc_least(slc_least(row_end, begin + (owner + 1) * part), walk->end);
    *out = (slc_piece){.index = walk->next, .owner = (int)owner, .at = at, .length = end - at};
    walk->at = end;
    walk->next += end == row_end;
    return true;
}

/* The next piece that belongs to `owner`. */
static inline bool slc_row_walk_next_of(slc_row_walk *walk, int owner, slc_piece *out)
{
    while (slc_row_walk_next(walk, out))
        if (out->owner == owner) return true;
    return false;
}

#endif
