/* Moves the rows of tiles: copies that change row distance and type, panels for oneDNN, and a tile's way into C. The
 * work is split over the stream's threads. */
#pragma once

#include "lib/kernels/kernel.h"

#include <sluice/dtype.h>
#include <stdbool.h>

typedef struct {
    sluice_dtype dtype;
    const void *data;
    uint64_t stride; /* elements between rows */
} slc_gemm_rows;

/* Fills to[rows][columns], dense, in the type of `from` or widened to fp32. */
void slc_gemm_rows_copy(const sluice_stream *stream, uint64_t rows, uint64_t columns, slc_gemm_rows from,
                        sluice_dtype dtype, void *to);

enum { SLC_GEMM_PANEL = 64, SLC_GEMM_PANEL_UNIT = 16 };
/* Fills to[columns / PANEL][rows][PANEL] in fp32; rows are padded with 0 to a multiple of UNIT, columns to one of
 * PANEL. */
void slc_gemm_rows_panels(const sluice_stream *stream, uint64_t rows, uint64_t columns, slc_gemm_rows from, float *to);

/* c = factor tile (+ residual) (+ c) */
typedef struct {
    uint64_t rows, columns;
    const float *tile;    /* [rows][columns], dense */
    const void *residual; /* NULL, or with c's type and stride */
    void *c;
    uint64_t stride; /* elements between rows of c */
    sluice_dtype dtype;
    float factor;
    bool accumulate;
} slc_gemm_finish;
void slc_gemm_rows_finish(const sluice_stream *stream, const slc_gemm_finish *finish);
