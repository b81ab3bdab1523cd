/* A copy past the cache. Stores that go through the cache first read each line that they replace: a copy then moves
 * half as much again. It pays if the result is larger than the cache, which would not keep it for its reader. */
#pragma once

#include "lib/kernels/isa.h"
#include "lib/kernels/kernel.h"

/* Copies as slc_copy does, and on a GPU by slc_copy. Any alignment; the ranges do not overlap. Errors: those of
 * slc_copy. */
sluice_status slc_copy_past_cache(sluice_stream *stream, void *dst, const void *src, uint64_t bytes);

/* ---- Forms ---- */

typedef struct {
    void *dst;
    const void *src;
} slc_copy_args;

SLC_ISA_DECLARE(slc_copy_range); /* counts bytes */
