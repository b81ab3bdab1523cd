/* A set of rows has one bit for each row, so that a list is in order without sorting and a row's position in it is a
 * count of bits. row_lists_test.c covers this file. */
#include "lib/engine/rows/lists.h"

static uint64_t count_different(slc_row_mark *marks, const int32_t *rows, uint64_t count)
{
    uint64_t found = 0;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t bit = (uint64_t)1 << rows[i] % 64, *bits = &marks[rows[i] / 64].bits;
        found += !(*bits & bit);
        *bits |= bit;
    }
    return found;
}

static void write_list(slc_row_mark *marks, uint64_t row_count, slc_row_list *list)
{
    uint32_t found = 0;
    for (uint64_t word = 0; word < (row_count + 63) / 64; word++) {
        marks[word].before = found;
        for (uint64_t bits = marks[word].bits; bits; bits &= bits - 1)
            list->rows[found++] = (uint32_t)(64 * word) + (uint32_t)__builtin_ctzll(bits);
    }
    list->count = found;
}

static void write_places(const slc_row_mark *marks, const int32_t *rows, uint64_t count, int32_t *places)
{
    for (uint64_t i = 0; i < count; i++) {
        const slc_row_mark *mark = &marks[rows[i] / 64];
        uint64_t below = mark->bits & (((uint64_t)1 << rows[i] % 64) - 1);
        places[i] = (int32_t)mark->before + __builtin_popcountll(below);
    }
}

bool slc_row_list_make(slc_row_mark *marks, uint64_t row_count, const int32_t *rows, uint64_t count, uint64_t most,
                       slc_row_list *list, int32_t *places)
{
    bool fits = count_different(marks, rows, count) <= most;
    if (!fits || !list) {
        for (uint64_t i = 0; i < count; i++) marks[rows[i] / 64].bits = 0;
        return fits;
    }
    write_list(marks, row_count, list);
    write_places(marks, rows, count, places);
    for (uint32_t i = 0; i < list->count; i++) marks[list->rows[i] / 64].bits = 0;
    return true;
}
