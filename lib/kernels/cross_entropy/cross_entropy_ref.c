/* -log softmax[target] and its derivative. */
#include "lib/kernels/cross_entropy/cross_entropy_ref.h"

#include <math.h>

void slc_cross_entropy_ref(uint64_t rows, uint64_t classes, double *logits, const int32_t *targets,
                           double gradient_scale, double *losses)
{
    for (uint64_t row = 0; row < rows; row++) {
        double *x = logits + row * classes, largest = -INFINITY, sum = 0;
        int32_t target = targets[row];
        for (uint64_t i = 0; i < classes; i++) largest = fmax(largest, x[i]);
        for (uint64_t i = 0; i < classes; i++) sum += exp(x[i] - largest);
        losses[row] = target < 0 ? 0 : log(sum) + largest - x[target];
        if (gradient_scale == 0) continue;
        for (uint64_t i = 0; i < classes; i++) {
            double softmax = exp(x[i] - largest) / sum, hot = (int64_t)i == target ? 1 : 0;
            x[i] = target < 0 ? 0 : (softmax - hot) * gradient_scale;
        }
    }
}
