/* The fast LAMB, compiled once for each instruction set. */
#pragma once

#include "lib/kernels/adamw/adamw_cpu.h"
#include "lib/kernels/lamb/lamb.h"

typedef struct {
    slc_adamw_factors factors;
    const sluice_step_words *words; /* as slc_adamw_args has them */
    double learning_rate;
    const slc_adamw_range *ranges;
    uint32_t range_count;
    const slc_lamb_bins *bins;  /* one for each range; added to atomically */
    const double *trust;        /* one for each range; or NULL */
    const double *const *norms; /* without `trust`: two for each range, or NULL for a ratio of 1 */
    slc_lamb_bounds bounds;
} slc_lamb_args;

SLC_ISA_DECLARE(slc_lamb_measure_ranges);
SLC_ISA_DECLARE(slc_lamb_apply_ranges);
SLC_C_LINKAGE sluice_status slc_lamb_measure_cuda(sluice_stream *stream, const slc_lamb_args *args);
SLC_C_LINKAGE sluice_status slc_lamb_apply_cuda(sluice_stream *stream, const slc_lamb_args *args);
