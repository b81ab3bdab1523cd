/* Plain loops are enough: they move a tile whose product takes tens of times longer. gemm_test.c covers this file. */
#include "lib/kernels/gemm/gemm_rows.h"

#include "lib/kernels/host.h"

#include <string.h>

enum { GRAIN = 16 }; /* least number of rows for a thread */

static const void *at(slc_gemm_rows x, uint64_t row, uint64_t column)
{
    return (const char *)x.data + (row * x.stride + column) * sluice_dtype_bytes(x.dtype);
}

typedef struct {
    slc_gemm_rows from;
    sluice_dtype dtype;
    uint64_t rows, columns;
    void *to;
} copy_args;

static void copy_rows(const void *args, uint32_t part, uint64_t first, uint64_t last)
{
    const copy_args *x = args;
    (void)part;
    for (uint64_t row = first; row < last; row++) {
        void *to = (char *)x->to + row * x->columns * sluice_dtype_bytes(x->dtype);
        const uint16_t *narrow = at(x->from, row, 0);
        if (x->from.dtype == x->dtype)
            memcpy(to, narrow, x->columns * sluice_dtype_bytes(x->dtype));
        else
            for (uint64_t i = 0; i < x->columns; i++) ((float *)to)[i] = sluice_bf16_to_float(narrow[i]);
    }
}

void slc_gemm_rows_copy(const sluice_stream *stream, uint64_t rows, uint64_t columns, slc_gemm_rows from,
                        sluice_dtype dtype, void *to)
{
    const copy_args args = {.from = from, .dtype = dtype, .rows = rows, .columns = columns, .to = to};
    slc_host_run(stream, rows, GRAIN, 1, copy_rows, &args);
}

/* Goes through whole rows in order, so that the processor's prefetching can follow. */
static void panel_rows(const void *args, uint32_t part, uint64_t first, uint64_t last)
{
    const copy_args *x = args;
    const uint64_t whole = x->columns / SLC_GEMM_PANEL, rest = x->columns % SLC_GEMM_PANEL;
    (void)part;
    for (uint64_t row = first; row < last; row++) {
        float *to = (float *)x->to + row * SLC_GEMM_PANEL;
        const uint64_t panel = x->rows * SLC_GEMM_PANEL;
        for (uint64_t i = 0; i < whole; i++)
            memcpy(to + i * panel, at(x->from, row, i * SLC_GEMM_PANEL), SLC_GEMM_PANEL * sizeof *to);
        if (!rest) continue;
        memcpy(to + whole * panel, at(x->from, row, whole * SLC_GEMM_PANEL), rest * sizeof *to);
        memset(to + whole * panel + rest, 0, (SLC_GEMM_PANEL - rest) * sizeof *to);
    }
}

void slc_gemm_rows_panels(const sluice_stream *stream, uint64_t rows, uint64_t columns, slc_gemm_rows from, float *to)
{
    const uint64_t padded = (rows + SLC_GEMM_PANEL_UNIT - 1) / SLC_GEMM_PANEL_UNIT * SLC_GEMM_PANEL_UNIT;
    const copy_args args = {.from = from, .rows = padded, .columns = columns, .to = to};
    slc_host_run(stream, rows, GRAIN, 1, panel_rows, &args);
    for (uint64_t i = 0; i * SLC_GEMM_PANEL < columns; i++)
        memset(to + (i * padded + rows) * SLC_GEMM_PANEL, 0, (padded - rows) * SLC_GEMM_PANEL * sizeof *to);
}

static void finish_fp32(const slc_gemm_finish *x, uint64_t row)
{
    const float *tile = x->tile + row * x->columns;
    const float *residual = x->residual ? (const float *)x->residual + row * x->stride : NULL;
    float *c = (float *)x->c + row * x->stride;
    for (uint64_t i = 0; i < x->columns; i++) {
        const float product = x->factor * tile[i], value = residual ? product + residual[i] : product;
        c[i] = x->accumulate ? c[i] + value : value;
    }
}

static void finish_bf16(const slc_gemm_finish *x, uint64_t row)
{
    const float *tile = x->tile + row * x->columns;
    const uint16_t *residual = x->residual ? (const uint16_t *)x->residual + row * x->stride : NULL;
    uint16_t *c = (uint16_t *)x->c + row * x->stride;
    for (uint64_t i = 0; i < x->columns; i++) {
        const float product = x->factor * tile[i],
                    value = residual ? product + sluice_bf16_to_float(residual[i]) : product;
        c[i] = sluice_bf16_from_float(x->accumulate ? sluice_bf16_to_float(c[i]) + value : value);
    }
}

static void finish_rows(const void *args, uint32_t part, uint64_t first, uint64_t last)
{
    const slc_gemm_finish *x = args;
    (void)part;
    for (uint64_t row = first; row < last; row++)
        if (x->dtype == SLUICE_BF16)
            finish_bf16(x, row);
        else
            finish_fp32(x, row);
}

void slc_gemm_rows_finish(const sluice_stream *stream, const slc_gemm_finish *finish)
{
    slc_host_run(stream, finish->rows, GRAIN, 1, finish_rows, finish);
}
