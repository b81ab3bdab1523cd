/* Softmax cross-entropy over rows of logits: loss and gradient are computed while a row is in the cache. */
#ifndef SLC_KERNEL_CROSS_ENTROPY_H
#define SLC_KERNEL_CROSS_ENTROPY_H

#include "lib/kernels/kernel.h"

#include <sluice/dtype.h>

/* logits: rows x classes in fp32, each row `stride` >= classes elements after the one before it, replaced by dlogits =
 * (softmax - wanted) * gradient_scale; if gradient_scale is 0 they are left as they are. `wanted` is the distribution
 * (1 - smoothing) * onehot(target) + smoothing / classes (Szegedy et al., arXiv 1512.00567, section 7; PyTorch's
 * CrossEntropyLoss(label_smoothing=)); smoothing is in [0, 1), and 0 gives the bits of onehot(target). The gradient has
 * the type `gradient`: a row of bf16 lies at the start of the row of logits that it replaces, so rows are 2 * stride
 * bf16 elements apart, and the rest of each row's classes is undefined. Nothing between two rows is touched.
 * losses[row] = -sum(wanted * log softmax). A target of -1 is ignored: loss 0, gradient 0. Every other target is a
 * class, from 0 to classes - 1: the caller checks that, because the targets lie in the device's memory. */
sluice_status slc_cross_entropy(sluice_stream *stream, uint64_t rows, uint64_t classes, uint64_t stride, float *logits,
                                sluice_dtype gradient, const int32_t *targets, float smoothing, float gradient_scale,
                                float *losses);

#endif
