/* Softmax cross-entropy over a row of logits, loss and gradient in one pass. */
#ifndef SLC_KERNEL_CROSS_ENTROPY_H
#define SLC_KERNEL_CROSS_ENTROPY_H

#include "lib/kernels/kernel.h"

/* logits: rows x classes, replaced by dlogits = (softmax - onehot(target)) * gradient_scale, unless gradient_scale is
 * 0: then they are left as they are. losses[row] = -log softmax[target]. A target of -1 is ignored: loss 0, gradient 0.
 */
sluice_status slc_cross_entropy(slc_stream *stream, uint64_t rows, uint64_t classes, float *logits,
                                const int32_t *targets, float gradient_scale, float *losses);

#endif
