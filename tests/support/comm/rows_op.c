#include "tests/support/comm/rows_op.h"

#include <sluice/dtype.h>
#include <stdlib.h>
#include <string.h>

void rows_list_draw(uint64_t seed, int rank, const slc_rows *rows, slc_row_list *out)
{
    uint64_t chance = seed * 7919 + (uint64_t)rank * 104729 + 1, most = rows->most;
    if (most > rows->row_count) most = rows->row_count;
    const uint64_t how = pick(&chance, 6);
    uint64_t left = how == 0 ? 0 : how < 3 ? most : pick(&chance, most + 1), row = 0, end = rows->row_count;
    if (how == 2 || how == 3) row = pick(&chance, end - left + 1), end = row + left;
    out->count = 0;
    for (; left; row++) {
        if (pick(&chance, end - row) >= left) continue;
        out->rows[out->count++] = (uint32_t)row;
        left--;
    }
}

rows_lists rows_lists_create(uint64_t seed, const slc_rows *rows, int size)
{
    rows_lists lists = {.size = size};
    for (int rank = 0; rank < size; rank++) {
        CHECK((lists.of[rank] = malloc(slc_row_list_bytes(rows->most))));
        rows_list_draw(seed, rank, rows, lists.of[rank]);
    }
    return lists;
}

void rows_lists_destroy(rows_lists *lists)
{
    for (int rank = 0; rank < lists->size; rank++) free(lists->of[rank]);
}

int rows_owner(const slc_op *op, slc_layout layout, int size, uint64_t element, uint64_t *at)
{
    const uint64_t block = element / op->block_elements, begin = block * op->block_elements, n = (uint64_t)size;
    const uint64_t left = op->elements - begin, part = (left < op->block_elements ? left : op->block_elements) / n;
    const uint64_t owner = (element - begin) / part;
    *at = layout == SLC_WHOLE ? element : begin / n + element - begin - owner * part;
    return (int)owner;
}

static void rows_add_element(const slc_op *op, int count, const float *values, void *dst, uint64_t at)
{
    float sum = 0;
    for (int i = 0; i < count; i++) sum = i ? sum + values[i] : values[i];
    if (op->dtype == SLUICE_BF16 && !op->widen) {
        uint16_t *narrow = (uint16_t *)dst + at;
        *narrow = sluice_bf16_from_float(sluice_bf16_to_float(*narrow) + op->scale * sum);
    } else
        ((float *)dst)[at] += op->scale * sum;
}

void rows_op_apply(const slc_op *op, const rows_lists *lists, char *const *src, char *const *dst)
{
    const uint64_t columns = op->rows->row_elements, bytes = sluice_dtype_bytes(op->dtype);
    uint32_t next[RANKS_MAX] = {0};
    for (uint64_t e = 0; e < op->rows->row_count * columns; e++) {
        const uint64_t row = e / columns, column = e % columns;
        uint64_t at = 0;
        float values[RANKS_MAX];
        int count = 0,
            owner = rows_owner(op, op->kind == SLC_GATHER_ROWS ? op->src_layout : op->dst_layout, lists->size, e, &at);
        for (int rank = 0; rank < lists->size; rank++) {
            if (next[rank] == lists->of[rank]->count || lists->of[rank]->rows[next[rank]] != row) continue;
            const uint64_t place = next[rank] * columns + column;
            if (op->kind == SLC_GATHER_ROWS)
                memcpy(dst[rank] + place * bytes, src[owner] + at * bytes, bytes);
            else if (op->dtype == SLUICE_BF16)
                values[count++] = sluice_bf16_to_float(((const uint16_t *)(void *)src[rank])[place]);
            else
                values[count++] = ((const float *)(void *)src[rank])[place];
            next[rank] += column + 1 == columns;
        }
        if (count) rows_add_element(op, count, values, dst[owner], at);
    }
}

uint64_t rows_op_bytes(const slc_op *op, const rows_lists *lists, int rank)
{
    const uint64_t columns = op->rows->row_elements, others = (uint64_t)lists->size - 1;
    uint64_t elements = 0, at;
    for (int holder = 0; holder < lists->size; holder++) {
        if ((holder == rank) != (op->kind == SLC_REDUCE_ROWS)) continue;
        for (uint64_t i = 0; i < lists->of[holder]->count * columns; i++) {
            uint64_t element = lists->of[holder]->rows[i / columns] * columns + i % columns;
            bool own = rows_owner(op, SLC_WHOLE, lists->size, element, &at) == rank;
            elements += own == (op->kind == SLC_GATHER_ROWS);
        }
    }
    return others * slc_row_list_bytes(op->rows->most) + elements * sluice_dtype_bytes(op->dtype);
}
