/* Softmax cross-entropy over rows of logits: loss and gradient are computed while a row is in the cache. */
#pragma once

#include "lib/kernels/isa.h"
#include "lib/kernels/kernel.h"

/* losses[row] = -sum(wanted * log softmax), where `wanted` is the distribution (1 - smoothing) * onehot(target) +
 * smoothing / classes (Szegedy et al., arXiv 1512.00567, section 7; PyTorch's CrossEntropyLoss(label_smoothing=)). The
 * gradient is (softmax - wanted) * gradient_scale and replaces the logits: a row in bf16 lies at the start of the row
 * of logits that it replaces, so rows are 2 * stride bf16 elements apart, and the rest of each row's classes is
 * undefined. Nothing between two rows is touched. */
typedef struct {
    sluice_dtype gradient;
    uint64_t rows, classes, stride; /* a row lies `stride` >= classes elements after the one before it */
    void *logits;                   /* fp32 */
    /* -1: the row is ignored, with loss 0 and gradient 0. Every other target is a class, from 0 to classes - 1: the
     * caller checks that, because the targets lie in the device's memory. */
    const int32_t *targets;
    float smoothing;      /* in [0, 1); 0 gives the bits of onehot(target) */
    float gradient_scale; /* 0: the logits are left as they are */
    void *losses;         /* [rows] in fp32 */
} slc_cross_entropy_args;

sluice_status slc_cross_entropy(sluice_stream *stream, const slc_cross_entropy_args *args);

/* ---- Forms ---- */

void slc_cross_entropy_ref(const slc_cross_entropy_args *args);

SLC_ISA_DECLARE(slc_cross_entropy_range); /* over ranges of rows */
SLC_DEVICE_DECLARE(slc_cross_entropy);
