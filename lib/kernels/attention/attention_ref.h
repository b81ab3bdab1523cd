/* The plain loops of attention.h in float64. */
#ifndef SLC_KERNEL_ATTENTION_REF_H
#define SLC_KERNEL_ATTENTION_REF_H

#include "lib/kernels/attention/attention.h"

/* weights: [tokens], scratch. */
void slc_attention_forward_ref(const slc_attention_shape *shape, const double *qkv, double *out, double *logsumexp,
                               double *weights);
void slc_attention_backward_ref(const slc_attention_shape *shape, const double *qkv, const double *out,
                                const double *logsumexp, const double *dout, double *dqkv);

#endif
