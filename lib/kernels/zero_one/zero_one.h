/* The updates of 0/1 Adam (Lu et al., arXiv 2202.06009; DeepSpeed 0.16.4's zoadam.py, operation by operation) that no
 * other optimizer has. Its pass 1 is slc_compress_worker (input.moves), its refresh slc_adamw_many.
 *
 * The variance v stays as it is in all of them: D = sqrt(v) / sqrt(bias_correction2) + epsilon. An interval is the
 * steps after one exchange, up to and including the next; u is the sum of their moves so far.
 *   gradient   m = beta1 m + (1-beta1) g, where g is the result of the exchange;  w -= lr wd w;  w -= lr/c1 m / D
 *   local      m = beta1 m + (1-beta1) g, g is this rank's own;  w and u both move by -lr/c1 m / D;  w -= lr wd w
 *   exchanged  y is the result of the exchange of u D;  m = momentum_factor y;  w = value_factor w0 + y / D, where
 *              w0 is w before the interval
 * c1 is bias_correction1. w0 is `kept`, which the interval's first local step stores; without `kept` it is w - u, as in
 * the original, which is not the same to the bit. The first step of an interval reads neither u nor kept, so they carry
 * nothing from one interval to the next. With decay_moves u moves by -lr wd w too, as in the original.
 *
 * All are elementwise: the same bits for any split, thread count and instruction set, and on a GPU. If the settings
 * have words, they are heeded as in slc_adamw_many. Errors: ARGUMENT (compress.h). */
#pragma once

#include "lib/kernels/compress/compress.h"

typedef struct {
    uint64_t count;
    float *value, *exp_avg;
    const float *exp_avg_sq;
    void *rounded;             /* receives the new values in bf16, or NULL */
    float *accumulator, *kept; /* u, and w0 or NULL; `gradient` ignores both */
    bool no_decay, decay_moves;
    bool mask;             /* if exp_avg_sq is 0: g of `gradient`, m of `local` and y of `exchanged` are 0 */
    bool begins;           /* this is the interval's first step */
    bool clears;           /* `exchanged`: u becomes 0 */
    uint32_t *bad, number; /* `local`: *bad is lowered to `number` if an element would become infinite or NaN; `bad` may
                              be NULL */
} slc_zero_one_range;

/* Updates the elements that `results` names; *finite is as in slc_compress_apply: elements under a scale that is not
 * finite stay untouched. range: the whole tensor. It moves 20.1 bytes for each fp32 element. */
sluice_status slc_zero_one_gradient(sluice_stream *stream, const slc_adamw_settings *settings,
                                    const slc_compress_results *results, const slc_zero_one_range *range, bool *finite);

/* Updates any range of elements. An element that would become infinite or NaN stays untouched. In one pass it moves 32
 * bytes for each fp32 element (in the interval's first step 28, and 4 more with `kept`). */
sluice_status slc_zero_one_local(sluice_stream *stream, const slc_adamw_settings *settings, sluice_dtype gradient_dtype,
                                 const void *gradient, const slc_zero_one_range *range);

/* Updates the elements that `results` names, as slc_zero_one_gradient does. Of settings it reads only epsilon and
 * bias_correction2. value_factor counts as 1 for a tensor with no_decay. It moves 16.1 bytes for each fp32
 * element, 20.1 without `kept` (in the interval's first step 16.1). */
sluice_status slc_zero_one_exchanged(sluice_stream *stream, const slc_adamw_settings *settings, double momentum_factor,
                                     double value_factor, const slc_compress_results *results,
                                     const slc_zero_one_range *range, bool *finite);

/* A tensor of those that are updated together; `local` reads the gradient, the other two read `results`. */
typedef struct {
    slc_adamw_settings settings;
    slc_compress_results results;
    sluice_dtype gradient_dtype;
    const void *gradient;
    slc_zero_one_range range;
    double momentum_factor, value_factor; /* of `exchanged` */
} slc_zero_one_tensor;

/* The functions whose names end in _many do the same for many tensors, on a GPU by few launches. All gradients have one
 * type. */
sluice_status slc_zero_one_gradient_many(sluice_stream *stream, uint32_t count, const slc_zero_one_tensor *tensors);
sluice_status slc_zero_one_local_many(sluice_stream *stream, uint32_t count, const slc_zero_one_tensor *tensors);
sluice_status slc_zero_one_exchanged_many(sluice_stream *stream, uint32_t count, const slc_zero_one_tensor *tensors);

/* ---- Forms ---- */

/* The oracles, in float64, take the arrays of slc_zero_one_range; kept NULL: w0 is w - u. */
typedef struct {
    uint64_t count;
    double *value, *exp_avg, *accumulator, *kept;
    const double *exp_avg_sq;
    bool no_decay, decay_moves, mask, begins;
} slc_zero_one_plain;

void slc_zero_one_gradient_ref(const slc_adamw_settings *settings, const slc_zero_one_plain *range, const double *g);
void slc_zero_one_local_ref(const slc_adamw_settings *settings, const slc_zero_one_plain *range,
                            const double *gradient);
void slc_zero_one_exchanged_ref(const slc_adamw_settings *settings, double momentum_factor, double value_factor,
                                const slc_zero_one_plain *range, const double *y);
