/* 0/1 Adam's updates (Lu et al., arXiv 2202.06009; DeepSpeed 0.16.4's zoadam.py, operation by operation) that no other
 * optimizer has. Its pass 1 is slc_compress_worker (input.moves), its refresh slc_adamw_many.
 *
 * The variance v stays as it is in all of them: D = sqrt(v) / sqrt(bias_correction2) + epsilon. An interval is the
 * steps from behind one exchange up to and with the next; u is what its steps have moved so far.
 *   gradient   m = beta1 m + (1-beta1) g, where g is what the exchange gave;  w -= lr wd w;  w -= lr/c1 m / D
 *   local      m = beta1 m + (1-beta1) g, g is this rank's own;  w and u both move by -lr/c1 m / D;  w -= lr wd w
 *   exchanged  y is what the exchange of u D gave;  m = momentum_factor y;  w = value_factor w0 + y / D, where w0 is w
 *              as it was before the interval
 * c1 is bias_correction1. w0 is `kept`, which the interval's first local step stores; without `kept` it is w - u, as
 * the original has it, which is not the same to the bit. The first step of an interval reads neither u nor kept, so
 * they hold nothing from one interval to the next. With decay_moves u moves by -lr wd w too, as in the original.
 *
 * Elementwise: the same bits for any split, thread count and instruction set. Errors: UNSUPPORTED (no host stream),
 * ARGUMENT (compress.h). */
#ifndef SLC_KERNEL_ZERO_ONE_H
#define SLC_KERNEL_ZERO_ONE_H

#include "lib/kernels/compress/compress.h"

typedef struct {
    uint64_t count;
    float *value, *exp_avg;
    const float *exp_avg_sq;
    void *rounded;             /* gets the new values in bf16, or NULL */
    float *accumulator, *kept; /* u; kept may be NULL. gradient: neither is looked at */
    bool no_decay, decay_moves;
    bool mask;   /* where exp_avg_sq is 0, g of `gradient`, m of `local` and y of `exchanged` are 0 */
    bool begins; /* this is the interval's first step */
} slc_zero_one_range;

/* Elements first..first+count-1 of the tensor, packets, stride and *finite as in slc_compress_apply: what lies under a
 * scale that is not finite stays untouched. range: of the whole tensor. 20.1 bytes an element of fp32. */
sluice_status slc_zero_one_gradient(slc_stream *stream, const slc_adamw_settings *settings,
                                    const slc_compress_shape *shape, const void *packets, uint64_t stride,
                                    uint64_t first, uint64_t count, const slc_zero_one_range *range, bool *finite);

/* Any range of elements. An element that would become infinite or no number stays untouched, and *finite = false.
 * 32 bytes an element of fp32 in one pass (the interval's first: 28, and 4 where there is `kept`). */
sluice_status slc_zero_one_local(slc_stream *stream, const slc_adamw_settings *settings, sluice_dtype gradient_dtype,
                                 const void *gradient, const slc_zero_one_range *range, bool *finite);

/* Pieces as in slc_zero_one_gradient. Of settings only epsilon and bias_correction2 are looked at. value_factor is 1
 * for a tensor with no_decay. 16.1 bytes an element of fp32, without `kept` 20.1 (the interval's first: 16.1). */
sluice_status slc_zero_one_exchanged(slc_stream *stream, const slc_adamw_settings *settings, double momentum_factor,
                                     double value_factor, const slc_compress_shape *shape, const void *packets,
                                     uint64_t stride, uint64_t first, uint64_t count, const slc_zero_one_range *range,
                                     bool *finite);

#endif
