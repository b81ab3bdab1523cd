/* The plain loops of attention.h in float64. Arrays are [batch][tokens][heads][head_size] whatever the shape's strides;
 * `relative` is the shape's table in float64 and is used if the shape has one. */
#ifndef SLC_KERNEL_ATTENTION_REF_H
#define SLC_KERNEL_ATTENTION_REF_H

#include "lib/kernels/attention/attention.h"

/* Returns the row of BEiT's table for this query and key. */
uint64_t slc_attention_relative_row(const slc_attention_shape *shape, uint64_t query, uint64_t key);

/* weights: [tokens], scratch. */
void slc_attention_forward_ref(const slc_attention_shape *shape, const double *q, const double *k, const double *v,
                               const double *relative, double *out, double *logsumexp, double *weights);
/* Stores all gradients. */
void slc_attention_backward_ref(const slc_attention_shape *shape, const double *q, const double *k, const double *v,
                                const double *relative, const double *out, const double *logsumexp, const double *dout,
                                double *dq, double *dk, double *dv, double *drelative);

#endif
