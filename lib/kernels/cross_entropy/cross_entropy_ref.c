/* -sum(wanted * log softmax) and its derivative. */
#include "lib/kernels/cross_entropy/cross_entropy_ref.h"

#include <math.h>

void slc_cross_entropy_ref(uint64_t rows, uint64_t classes, double *logits, const int32_t *targets, double smoothing,
                           double gradient_scale, double *losses)
{
    for (uint64_t row = 0; row < rows; row++) {
        double *x = logits + row * classes, largest = -INFINITY, sum = 0, loss = 0;
        int32_t target = targets[row];
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
