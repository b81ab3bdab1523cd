/* -sum(wanted * log softmax) and its derivative. cross_entropy_test.c covers this file. */
#include "lib/kernels/cross_entropy/cross_entropy.h"

#include <math.h>

void slc_cross_entropy_ref(const slc_cross_entropy_args *args)
{
    const uint64_t classes = args->classes;
    const double smoothing = (double)args->smoothing, gradient_scale = (double)args->gradient_scale;
    double *losses = args->losses;
    for (uint64_t row = 0; row < args->rows; row++) {
        double *x = (double *)args->logits + row * args->stride, largest = -INFINITY, sum = 0, loss = 0;
        int32_t target = args->targets[row];
        for (uint64_t i = 0; i < classes; i++) largest = fmax(largest, x[i]);
        for (uint64_t i = 0; i < classes; i++) sum += exp(x[i] - largest);
        for (uint64_t i = 0; i < classes; i++) {
            double wanted = smoothing / (double)classes + ((int64_t)i == target ? 1 - smoothing : 0);
            if (wanted > 0) loss += wanted * (log(sum) + largest - x[i]);
        }
        losses[row] = target < 0 ? 0 : loss;
        if (gradient_scale == 0) continue;
        for (uint64_t i = 0; i < classes; i++) {
            double softmax = exp(x[i] - largest) / sum;
            double wanted = smoothing / (double)classes + ((int64_t)i == target ? 1 - smoothing : 0);
            x[i] = target < 0 ? 0 : (softmax - wanted) * gradient_scale;
        }
    }
}
