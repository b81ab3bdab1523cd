/* The list of the rows of a table that a rank touches, as it lies in memory: planning counts its bytes, communication
 * sends it. */
#pragma once

#include <stdint.h>

typedef struct {
    uint32_t count, nothing[15];
    uint32_t rows[]; /* ascending, without duplicates */
} slc_row_list;

/* Bytes of a list with room for `most_rows` rows; a multiple of 64. */
static inline uint64_t slc_row_list_bytes(uint64_t most_rows)
{
    return sizeof(slc_row_list) + (4 * most_rows + 63) / 64 * 64;
}

/* Marks for 64 rows of the table: which of them are in the list, and how many listed rows come before them. Making a
 * list needs marks for all rows of the table. */
typedef struct {
    uint64_t bits, before;
} slc_row_mark;

/* Bytes of the marks for a table of `row_count` rows; a multiple of 64. */
static inline uint64_t slc_row_marks_bytes(uint64_t row_count)
{
    return ((row_count + 63) / 64 * sizeof(slc_row_mark) + 63) / 64 * 64;
}
