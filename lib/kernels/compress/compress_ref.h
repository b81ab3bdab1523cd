/* The rules of compress.h in float64, the oracle of its tests. Signs are +1 and -1. */
#ifndef SLC_KERNEL_COMPRESS_REF_H
#define SLC_KERNEL_COMPRESS_REF_H

#include "lib/kernels/compress/compress.h"

/* Adds x (shape->count long, padded with zeros) to the errors of one rank (N long, replaced by the new ones). sum: b;
 * scale: ranks * slc_compress_scales. */
void slc_compress_worker_ref(const slc_compress_shape *shape, const double *x, double *error, double *sum,
                             double *scale);

/* sign[r] and scale[r] are from rank r, for this chunk only. error: the server's, C long. sum: a; result_scale: one
 * chunk's scales. */
void slc_compress_server_ref(const slc_compress_shape *shape, const double *const *sign, const double *const *scale,
                             double *error, double *sum, double *result_scale);

#endif
