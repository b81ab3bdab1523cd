/* The arrays of a case lie one after the other in one piece of memory of the same kind as the arena.
 * tests/command/measure/kernels_test.sh covers this file. */
#include "bench/lab/kernels/kernel_table.h"

#include "bench/lab/numbers.h"
#include "lib/kernels/embedding/embedding.h"

#include <string.h>

static void *take_place(char **at, uint64_t bytes)
{
    char *place = *at;
    *at += (bytes + 4095) / 4096 * 4096;
    return place;
}

uint64_t slc_kernel_case_bytes(const slc_kernel_case *c)
{
    uint64_t array = c->count * sizeof(float) + 4096, vector = c->channels * sizeof(float) + 4096;
    return SLC_KERNEL_ARRAYS * array + SLC_KERNEL_VECTORS * vector + 4 * (c->rows * 4 + 4096) + c->workspace_bytes +
           4096;
}

void slc_kernel_case_lay_out(slc_kernel_case *c, void *base)
{
    char *at = base;
    for (int i = 0; i < SLC_KERNEL_ARRAYS; i++) c->array[i] = take_place(&at, c->count * sizeof(float));
    for (int i = 0; i < SLC_KERNEL_VECTORS; i++) c->vector[i] = take_place(&at, c->channels * sizeof(float));
    for (int i = 0; i < 2; i++) c->statistic[i] = take_place(&at, c->rows * sizeof(float));
    c->tokens = take_place(&at, c->rows * sizeof *c->tokens);
    c->token_order = take_place(&at, c->rows * sizeof *c->token_order);
    c->workspace = take_place(&at, c->workspace_bytes);
}

void slc_kernel_case_fill(slc_kernel_case *c)
{
    /* The upper half of a bf16 array is filled too, because some kernels read the array as fp32. */
    for (uint32_t i = 0; i < SLC_KERNEL_ARRAYS; i++) {
        slc_lab_fill(c->dtype, c->count, c->array[i], i + 1);
        if (c->dtype == SLUICE_BF16) memcpy((uint16_t *)c->array[i] + c->count, c->array[i], c->count * 2);
    }
    for (uint32_t i = 0; i < SLC_KERNEL_VECTORS; i++) slc_lab_fill(c->dtype, c->channels, c->vector[i], i + 9);
    for (uint64_t row = 0; row < c->rows; row++) c->tokens[row] = (int32_t)(row * row * 7 % c->rows);
    uint32_t *scratch = (uint32_t *)(void *)c->statistic[0]; /* before it gets its numbers */
    slc_embedding_order(c->rows, c->tokens, c->token_order, scratch);
    for (uint64_t row = 0; row < c->rows; row++) c->statistic[0][row] = 0.25f, c->statistic[1][row] = 1.5f;
    memset(c->workspace, 0, c->workspace_bytes);
}
