/* Softmax cross-entropy over a row of logits, loss and gradient while the row is in the cache. */
#ifndef SLC_KERNEL_CROSS_ENTROPY_H
#define SLC_KERNEL_CROSS_ENTROPY_H

#include "lib/kernels/kernel.h"

#include <sluice/dtype.h>

/* logits: rows x classes in fp32, replaced by dlogits = (softmax - onehot(target)) * gradient_scale, unless
 * gradient_scale is 0: then they are left as they are. The gradient has the type `gradient`: a row of bf16 lies at the
 * start of the row of logits that it replaces, so that rows are 2 * classes bf16 elements apart, and the rest of it is
 * undefined. losses[row] = -log softmax[target]. A target of -1 is ignored: loss 0, gradient 0.
 * Errors: ARGUMENT (another target that is no class); nothing is changed then. */
sluice_status slc_cross_entropy(slc_stream *stream, uint64_t rows, uint64_t classes, float *logits,
                                sluice_dtype gradient, const int32_t *targets, float gradient_scale, float *losses);

#endif
