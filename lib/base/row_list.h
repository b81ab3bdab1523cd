/* Which rows of a table a rank touches, as the list lies in memory: planning counts its bytes, communication sends it.
 */
#ifndef SLC_BASE_ROW_LIST_H
#define SLC_BASE_ROW_LIST_H

#include <stdint.h>

typedef struct {
    uint32_t count, nothing[15];
    uint32_t rows[]; /* ascending, no two equal */
} slc_row_list;

/* A multiple of 64. */
static inline uint64_t slc_row_list_bytes(uint64_t most_rows)
{
    return sizeof(slc_row_list) + (4 * most_rows + 63) / 64 * 64;
}

/* Of 64 rows: which are named, and how many are in front of them. Making a list needs marks for all rows. */
typedef struct {
    uint64_t bits, before;
} slc_row_mark;

/* A multiple of 64. */
static inline uint64_t slc_row_marks_bytes(uint64_t row_count)
{
    return ((row_count + 63) / 64 * sizeof(slc_row_mark) + 63) / 64 * 64;
}

#endif
