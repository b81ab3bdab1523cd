/* Softmax cross-entropy over rows of logits: loss and gradient are computed while a row is in the cache. */
#ifndef SLC_KERNEL_CROSS_ENTROPY_H
#define SLC_KERNEL_CROSS_ENTROPY_H

#include "lib/kernels/kernel.h"

#include <sluice/dtype.h>

/* logits: rows x classes in fp32, replaced by dlogits = (softmax - onehot(target)) * gradient_scale; if gradient_scale
 * is 0 they are left as they are. The gradient has the type `gradient`: a row of bf16 lies at the start of the row of
 * logits that it replaces, so rows are 2 * classes bf16 elements apart, and the rest of each is undefined. losses[row]
 * = -log softmax[target]. A target of -1 is ignored: loss 0, gradient 0.
 * Errors: ARGUMENT (any other target that is no class), and then nothing is changed. A GPU, which has the targets in
 * its memory, cannot say so: there the caller checks them, and a wrong one counts as -1. */
sluice_status slc_cross_entropy(sluice_stream *stream, uint64_t rows, uint64_t classes, float *logits,
                                sluice_dtype gradient, const int32_t *targets, float gradient_scale, float *losses);

#endif
