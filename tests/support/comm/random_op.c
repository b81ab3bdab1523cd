#include "tests/support/comm/random_op.h"

#include "tests/support/comm/forked_ranks.h"

#include <sluice/dtype.h>
#include <string.h>

static float value_of(uint64_t seed, int rank, uint64_t index)
{
    uint64_t chance = seed * 1000003 + (uint64_t)rank * 7919 + index * 31;
    return (float)((double)pick(&chance, 1 << 24) / (1 << 20) - 7.5) * (index % 7 == 0 ? 1e-6f : 1.0f);
}

/* Draws an operation on the rows of a table whose elements and blocks are drawn. Rows and table take `room` bytes each;
 * widened sums lie two rooms later. */
static void random_rows_draw(random_op *made, uint64_t *chance, uint64_t begin, uint64_t room)
{
    slc_op *op = &made->op;
    slc_rows *rows = &made->rows;
    const uint64_t fitting = room / sluice_dtype_bytes(op->dtype), limits[] = {5, 100, 1000, op->elements};
    uint64_t limit = limits[pick(chance, 4)];
    rows->row_elements = 1 + pick(chance, limit < op->elements ? limit : op->elements);
    rows->row_count = 1 + pick(chance, op->elements / rows->row_elements);
    if (pick(chance, 2)) rows->row_count = op->elements / rows->row_elements;
    uint64_t most = fitting / rows->row_elements;
    if (most > MOST_ROWS) most = MOST_ROWS;
    if (most > rows->row_count) most = rows->row_count;
    rows->most = pick(chance, 2) ? most : pick(chance, most + 1);
    made->lists_seed = pick(chance, 1 << 30);
    const bool gather = op->kind == SLC_GATHER_ROWS, shard = pick(chance, 2);
    made->src_at = begin + (gather ? 0 : room), made->dst_at = begin + (gather ? room : 0);
    if (gather)
        *op = slc_gather_rows_op(NULL, op->dtype, op->elements, op->block_elements, NULL, shard ? SLC_SHARD : SLC_WHOLE,
                                 NULL);
    else {
        const bool widen = op->dtype == SLUICE_BF16 && pick(chance, 2);
        if (widen) made->dst_at = begin + 2 * room;
        *op = slc_reduce_rows_op(NULL, op->dtype, widen ? SLUICE_FP32 : op->dtype, op->elements, op->block_elements,
                                 NULL, NULL, shard ? SLC_SHARD : SLC_WHOLE, op->scale);
    }
}

random_op random_op_draw(uint64_t *chance, int size, int place, uint64_t place_bytes)
{
    uint64_t grain = 16 * (uint64_t)size;
    random_op made = {0};
    slc_op *op = &made.op;
    static const slc_op_kind kinds[] = {SLC_REDUCE_SCATTER, SLC_ALL_GATHER,  SLC_ALL_REDUCE,     SLC_BROADCAST,
                                        SLC_BARRIER,        SLC_GATHER_ROWS, SLC_REDUCE_SCATTER, SLC_ALL_GATHER,
                                        SLC_ALL_REDUCE,     SLC_REDUCE_ROWS};
    op->kind = kinds[pick(chance, 10)];
    op->dtype = SLUICE_FP32;
    uint64_t dtype = pick(chance, 6);
    if (op->kind == SLC_ALL_REDUCE && dtype == 0) op->dtype = SLUICE_INT64;
    if (op->kind == SLC_ALL_REDUCE && dtype == 1) op->dtype = SLUICE_FP64;
    if (op->kind != SLC_BROADCAST && dtype > 3) op->dtype = SLUICE_BF16;
    bool narrow = op->dtype == SLUICE_BF16;
    op->block_elements = grain * (1 + pick(chance, pick(chance, 2) ? 8 : 120));
    uint64_t begin = (uint64_t)(op->dtype == SLUICE_INT64 ? INTEGERS : narrow ? NARROW : place) * place_bytes;
    uint64_t room = place_bytes / (narrow ? 4 : 2), most = (room - 4096) / sluice_dtype_bytes(op->dtype);
    op->elements = grain * (1 + pick(chance, most / grain / (1 + pick(chance, 20))));
    if (pick(chance, 4) == 0) op->block_elements = grain * (1 + pick(chance, op->elements / grain)); /* long ones too */
    uint64_t blocks = (op->elements + op->block_elements - 1) / op->block_elements;
    op->first_block = pick(chance, blocks);
    op->block_count = 1 + pick(chance, blocks - op->first_block);
    op->scale = (float)(1 + pick(chance, 5)) / 3;
    op->root = (int)pick(chance, (uint64_t)size);
    made.src_at = made.dst_at = begin;
    if (op->kind == SLC_GATHER_ROWS || op->kind == SLC_REDUCE_ROWS) {
        random_rows_draw(&made, chance, begin, room);
    } else if (op->kind == SLC_REDUCE_SCATTER) {
        op->accumulate = pick(chance, 2);
        op->dst_layout = pick(chance, 2) ? SLC_SHARD : SLC_WHOLE;
        if (op->dst_layout == SLC_SHARD || pick(chance, 2)) made.dst_at = begin + room;
        op->widen = narrow && pick(chance, 2);
        if (op->widen) made.dst_at = begin + 2 * room; /* fp32 numbers have places of their own */
    } else if (op->kind == SLC_ALL_GATHER) {
        op->src_layout = pick(chance, 2) ? SLC_SHARD : SLC_WHOLE;
        if (op->src_layout == SLC_SHARD || pick(chance, 2)) made.dst_at = begin + room;
    }
    op->what = "a random operation";
    return made;
}

/* ---- The oracle ---- */

static uint64_t part_at(const slc_op *op, slc_layout layout, uint64_t block, int rank, int size)
{
    uint64_t begin = block * op->block_elements, left = op->elements - begin;
    uint64_t length = left < op->block_elements ? left : op->block_elements;
    return layout == SLC_SHARD ? begin / (uint64_t)size : begin + (uint64_t)rank * (length / (uint64_t)size);
}

static uint64_t part_length(const slc_op *op, uint64_t block, int size)
{
    uint64_t left = op->elements - block * op->block_elements;
    return (left < op->block_elements ? left : op->block_elements) / (uint64_t)size;
}

static void sum_element(const random_op *made, char **arenas, int size, int owner, uint64_t read, uint64_t write)
{
    const slc_op *op = &made->op;
    char *to = arenas[owner] + made->dst_at;
    if (op->dtype == SLUICE_FP32) {
        float sum = 0;
        for (int rank = 0; rank < size; rank++) {
            float value = ((const float *)(void *)(arenas[rank] + made->src_at))[read];
            sum = rank ? sum + value : value;
        }
        float *place = (float *)(void *)to + write;
        *place = op->accumulate ? *place + op->scale * sum : op->scale * sum;
    } else if (op->dtype == SLUICE_BF16) {
        float sum = 0;
        for (int rank = 0; rank < size; rank++) {
            float value = sluice_bf16_to_float(((const uint16_t *)(void *)(arenas[rank] + made->src_at))[read]);
            sum = rank ? sum + value : value;
        }
        float *wide = (float *)(void *)to + write, value = op->scale * sum;
        uint16_t *narrow = (uint16_t *)(void *)to + write;
        if (op->accumulate) value = (op->widen ? *wide : sluice_bf16_to_float(*narrow)) + value;
        if (op->widen)
            *wide = value;
        else
            *narrow = sluice_bf16_from_float(value);
    } else if (op->dtype == SLUICE_INT64) {
        int64_t sum = 0;
        for (int rank = 0; rank < size; rank++) sum += ((const int64_t *)(void *)(arenas[rank] + made->src_at))[read];
        ((int64_t *)(void *)to)[write] = sum;
    } else {
        double sum = ((const double *)(void *)(arenas[0] + made->src_at))[read];
        for (int rank = 1; rank < size; rank++) sum += ((const double *)(void *)(arenas[rank] + made->src_at))[read];
        ((double *)(void *)to)[write] = sum;
    }
}

void random_op_block(const random_op *made, char **arenas, int size, uint64_t block)
{
    const slc_op *op = &made->op;
    uint64_t bytes = sluice_dtype_bytes(op->dtype), length = part_length(op, block, size);
    for (int owner = 0; owner < size; owner++) {
        uint64_t whole = part_at(op, SLC_WHOLE, block, owner, size);
        uint64_t from = part_at(op, op->src_layout, block, owner, size);
        uint64_t to = part_at(op, op->dst_layout, block, owner, size);
        if (op->kind == SLC_REDUCE_SCATTER || op->kind == SLC_ALL_REDUCE)
            for (uint64_t i = 0; i < length; i++) sum_element(made, arenas, size, owner, whole + i, to + i);
        for (int rank = 0; rank < size; rank++) {
            if (op->kind == SLC_ALL_GATHER)
                memmove(arenas[rank] + made->dst_at + whole * bytes, arenas[owner] + made->src_at + from * bytes,
                        length * bytes);
            else if (op->kind == SLC_BROADCAST && rank != op->root)
                memcpy(arenas[rank] + made->dst_at + whole * bytes, arenas[op->root] + made->src_at + whole * bytes,
                       length * bytes);
        }
    }
    for (int owner = 0; op->kind == SLC_ALL_REDUCE && owner < size; owner++)
        for (int rank = 0; rank < size; rank++) {
            uint64_t at = made->dst_at + part_at(op, SLC_WHOLE, block, owner, size) * bytes;
            if (rank != owner) memcpy(arenas[rank] + at, arenas[owner] + at, length * bytes);
        }
}

uint64_t random_op_bytes(const slc_op *op, int rank, int size)
{
    uint64_t length = 0;
    for (uint64_t b = op->first_block; b < op->first_block + op->block_count; b++) length += part_length(op, b, size);
    uint64_t one = length * sluice_dtype_bytes(op->dtype) * (uint64_t)(size - 1);
    switch (op->kind) {
    case SLC_REDUCE_SCATTER:
    case SLC_ALL_GATHER: return one;
    case SLC_ALL_REDUCE: return 2 * one;
    case SLC_BROADCAST: return rank == op->root ? one * (uint64_t)size : 0;
    default: return 0;
    }
}

void random_op_fill(char *arena, uint64_t place_bytes, uint64_t seed, int rank)
{
    float *values = (float *)(void *)arena;
    int64_t *integers = (int64_t *)(void *)(arena + INTEGERS * place_bytes);
    uint16_t *narrow = (uint16_t *)(void *)(arena + NARROW * place_bytes);
    for (uint64_t i = 0; i < place_bytes / sizeof *narrow; i++)
        narrow[i] = sluice_bf16_from_float(value_of(seed + 5, rank, i));
    for (uint64_t i = 0; i < OPERATIONS * place_bytes / sizeof *values; i++) values[i] = value_of(seed, rank, i);
    for (uint64_t i = 0; i < place_bytes / sizeof *integers; i++)
        integers[i] = (int64_t)(i * 2654435761u + (uint64_t)rank * 97 + seed) % 1000003 - 500000;
}
