/* A sum of squares that has the same bits for any partition. Grains of 16 elements are squared and summed in a fixed
 * tree in double; the grain sums are added exactly, in integer bins by exponent, so that neither the order nor the
 * split over ranks matters (the idea of reproducible summation, Demmel & Nguyen, ARITH 2013). Bins are added with plain
 * int64 additions: an all-reduce of SLC_NORM_BINS int64 values joins ranks. */
#pragma once

#include "lib/kernels/isa.h"
#include "lib/kernels/kernel.h"

#include <sluice/dtype.h>
#include <stdbool.h>

/* bins[SLC_NORM_BINS - 1] counts non-finite grains. The bins take 384 bytes; if many norms travel, each is packed into
 * SLC_NORM_WORDS int64. */
enum { SLC_NORM_BINS = 48, SLC_NORM_WORDS = 14 };

/* Adds `count` elements to bins: a multiple of 16, or the end of an array, whose last grain is completed with zeros. */
sluice_status slc_norm_add(sluice_stream *stream, sluice_dtype dtype, uint64_t count, const void *x, int64_t *bins);

/* Pack bins into fewer int64. Words of up to 2^14 ranks may be added; unpacked, they hold the sum of the bins. Host
 * memory. */
void slc_norm_pack(const int64_t *bins, int64_t *words);
void slc_norm_unpack(const int64_t *words, int64_t *bins);

/* Returns the square root of the sum in the bins, rounded once; infinity if there was a non-finite grain. Host
 * memory. */
double slc_norm_result(const int64_t *bins);

/* Sets *finite to false if any element is NaN or infinite; else leaves it alone. */
sluice_status slc_all_finite(sluice_stream *stream, sluice_dtype dtype, uint64_t count, const void *x, bool *finite);

/* ---- Forms ---- */

/* The GPU writes bins and finite. */
SLC_DEVICE_DECLARE(slc_norm_add);
SLC_DEVICE_DECLARE(slc_all_finite);

/* The plain loops: the sum of squares in long double, and the bins one grain at a time. */
long double slc_norm_sum_ref(uint64_t count, const float *x);
void slc_norm_add_ref(uint64_t count, const float *x, int64_t *bins);
bool slc_all_finite_ref(uint64_t count, const float *x);

enum { SLC_NORM_GRAIN = 16 };

typedef struct {
    sluice_dtype dtype;
    const void *x;
    uint64_t count;
    int64_t *bins; /* added to atomically */
} slc_norm_args;

typedef struct {
    sluice_dtype dtype;
    const void *x;
    bool *finite; /* any thread may set it to false */
} slc_finite_args;

SLC_ISA_DECLARE(slc_norm_range);   /* over ranges of grains */
SLC_ISA_DECLARE(slc_finite_range); /* over ranges of elements */
