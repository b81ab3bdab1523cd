/* LAMB with a variance that stays as it is (1-bit LAMB, Li et al., arXiv 2104.06069; as DeepSpeed 0.16.4 executes it),
 * for one parameter. With m its new momentum (0 if v is 0, if it is masked) and m_last the one before:
 *   g = (m - b1 m_last) / (1 - b1);  f = b2 f_last + (1-b2) g^2      the variance that goes on next to v
 *   d = sqrt(v) / sqrt(bias_correction2) + epsilon;  p = m / bias_correction1 / d;  u = p + wd w
 *   w -= lr coefficient u
 * The coefficient follows from three numbers over the whole parameter: ||p||, ||u|| and the largest of
 * d / (sqrt(f) / sqrt(fresh_correction) + epsilon). So there are two passes. From an averaged gradient, on any
 * ranges: `measure`, which only reads, then `update`. From an exchange, on a whole tensor: `receive`, which stores m
 * and f, then `move`. All is elementwise, and sums are exact (norm.h): bits are equal for any cut into ranges,
 * threads and instruction set, and on a GPU. The coefficient and the sums lie in memory of the stream's device.
 * If the settings have words, they are heeded as in slc_adamw_many, and nothing is measured in a skipped step. */
#pragma once

#include "lib/kernels/compress/compress.h"

typedef struct {
    slc_adamw_settings adam;
    double fresh_correction; /* correction of f, 1 - beta2^t */
} slc_frozen_lamb_settings;

/* A range of one parameter; arrays are `count` long. */
typedef struct {
    uint64_t count;
    float *value, *momentum, *fresh;
    const float *exp_avg_sq, *fresh_last; /* f_last: `fresh`, or v in the first step after the freeze */
    void *rounded;                        /* receives the new values in bf16, or NULL */
    bool no_decay, mask;
    bool counts_masked; /* masked elements, too, count in the largest ratio */
} slc_frozen_lamb_range;

/* Bins of ||p||^2 and ||u||^2, and the largest ratio as the bits of a double. The caller zeroes them before the first
 * range. */
typedef struct {
    int64_t *move, *update, *ratio;
} slc_frozen_lamb_sums;

/* slc_frozen_lamb_measure and slc_frozen_lamb_update form m = b1 m_last + (1-b1) (gradient_factor gradient). */
sluice_status slc_frozen_lamb_measure(sluice_stream *stream, const slc_frozen_lamb_settings *settings,
                                      sluice_dtype gradient_dtype, const void *gradient,
                                      const slc_frozen_lamb_range *range, const slc_frozen_lamb_sums *sums);
sluice_status slc_frozen_lamb_update(sluice_stream *stream, const slc_frozen_lamb_settings *settings,
                                     sluice_dtype gradient_dtype, const void *gradient,
                                     const slc_frozen_lamb_range *range, const double *coefficient);

/* m is the result of an exchange, divided by `divisor`; `receive` stores it, and `move` reads it. The range is a whole
 * tensor: the exchanged array's elements that `results` names, though `first` need be no multiple of 16 here. Every
 * scale must be finite, or the words say SLC_EXCHANGE_FAILED: then f becomes f_last, because the fresh variance begins
 * even if an exchange fails, and nothing else changes. */
sluice_status slc_frozen_lamb_receive(sluice_stream *stream, const slc_frozen_lamb_settings *settings,
                                      const slc_compress_results *results, double divisor,
                                      const slc_frozen_lamb_range *range, const slc_frozen_lamb_sums *sums);
sluice_status slc_frozen_lamb_move(sluice_stream *stream, const slc_frozen_lamb_settings *settings,
                                   const slc_frozen_lamb_range *range, const double *coefficient);

/* A range, or a tensor, of those that go through a pass together, with what the pass reads. */
typedef struct {
    slc_frozen_lamb_settings settings;
    slc_frozen_lamb_range range;
    sluice_dtype gradient_dtype; /* of `measure` and `update`, as the gradient is */
    const void *gradient;
    slc_compress_results results; /* of `receive`, as the divisor is */
    double divisor;
    slc_frozen_lamb_sums sums; /* of `measure` and `receive` */
    const double *coefficient; /* of `update` and `move` */
} slc_frozen_lamb_tensor;

/* The functions whose names end in _many do the same for many tensors or ranges, on a GPU by few launches. All
 * gradients have one type. */
sluice_status slc_frozen_lamb_measure_many(sluice_stream *stream, uint32_t count,
                                           const slc_frozen_lamb_tensor *tensors);
sluice_status slc_frozen_lamb_update_many(sluice_stream *stream, uint32_t count, const slc_frozen_lamb_tensor *tensors);
sluice_status slc_frozen_lamb_receive_many(sluice_stream *stream, uint32_t count,
                                           const slc_frozen_lamb_tensor *tensors);
sluice_status slc_frozen_lamb_move_many(sluice_stream *stream, uint32_t count, const slc_frozen_lamb_tensor *tensors);

/* ---- Forms ---- */

/* Steps one whole parameter in float64. momentum: m_last, becomes m; received: m before the mask; fresh: f_last,
 * becomes f; update: u; numbers: ||p||, ||u||, the largest ratio. Of `range` it reads only count and the flags. */
void slc_frozen_lamb_ref(const slc_frozen_lamb_settings *settings, const slc_frozen_lamb_range *range,
                         const double *received, const double *value, const double *exp_avg_sq, double *momentum,
                         double *fresh, double *update, double numbers[3]);
