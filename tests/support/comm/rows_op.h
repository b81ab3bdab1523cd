/* Operations on rows, for tests: random lists, made from a seed alone so that every rank knows all of them, and a plain
 * oracle that goes through the table element by element. */
#pragma once

#include "tests/support/comm/forked_ranks.h"

/* Draws a list that is empty, full, a run of adjacent rows, or any rows. */
void rows_list_draw(uint64_t seed, int rank, const slc_rows *rows, slc_row_list *out);

/* Makes the lists of all ranks. */
typedef struct {
    int size;
    slc_row_list *of[RANKS_MAX];
} rows_lists;

rows_lists rows_lists_create(uint64_t seed, const slc_rows *rows, int size);
void rows_lists_destroy(rows_lists *lists);

/* Finds the owner of an element of the table, and where the element lies in the owner's buffer. */
int rows_owner(const slc_op *op, slc_layout layout, int size, uint64_t element, uint64_t *at);

/* src[r] and dst[r]: rank r's buffers. */
void rows_op_apply(const slc_op *op, const rows_lists *lists, char *const *src, char *const *dst);

/* Bytes that this rank sends: its list to each other rank, and rows' elements to the ranks that own or that have them.
 */
uint64_t rows_op_bytes(const slc_op *op, const rows_lists *lists, int rank);
