/* The sum of one element range over ranks, in rank order: ((s0 + s1) + s2) + ..., in fp32, scaled once, rounded once to
 * the type of the result. Every reduction of block collectives is made of it. It is elementwise: any split gives the
 * same bits. */
#pragma once

#include "lib/kernels/isa.h"
#include "lib/kernels/kernel.h"

/* value = scale * sum */
typedef struct {
    uint64_t count;
    sluice_dtype from, to;      /* types of the sources, and of the destinations */
    const void *const *sources; /* in rank order; any of them may be a destination if `from` is `to` */
    uint32_t source_count, destination_count;
    void *const *destinations; /* each of them gets the result (all-reduce by push) */
    float scale;
    bool accumulate; /* the destination becomes its old value + value; only with 1 destination */
    /* On a host the results for 1 destination bypass the cache: for results that are too large for it and replace no
     * source. Several destinations are stored as ever. */
    bool stream_stores;
} slc_reduce_args;

/* Errors: ARGUMENT (no source or destination, accumulate with several destinations), UNSUPPORTED (more than
 * SLC_REDUCE_CUDA_MOST sources or destinations on a GPU; for the functions below, too). */
enum { SLC_REDUCE_CUDA_MOST = 64 };
sluice_status slc_reduce(sluice_stream *stream, const slc_reduce_args *args);

/* Sum small vectors of int64 or float64 likewise (norm bins, losses), on the caller's thread; a source may be a
 * destination. */
sluice_status slc_reduce_int64(sluice_stream *stream, uint64_t count, const int64_t *const *sources,
                               uint32_t source_count, int64_t *const *destinations, uint32_t destination_count);
sluice_status slc_reduce_float64(sluice_stream *stream, uint64_t count, const double *const *sources,
                                 uint32_t source_count, double *const *destinations, uint32_t destination_count);

/* ---- Forms ---- */

/* The plain loop in float, because the contract fixes every rounding: its arrays have the types that the arguments
 * say. */
void slc_reduce_ref(const slc_reduce_args *args);

SLC_ISA_DECLARE(slc_reduce_range); /* over ranges of elements */
SLC_DEVICE_DECLARE(slc_reduce);
SLC_DEVICE_DECLARE(slc_reduce_int64);
SLC_DEVICE_DECLARE(slc_reduce_float64);
