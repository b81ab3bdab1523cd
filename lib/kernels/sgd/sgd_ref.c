/* Sutskever et al., ICML 2013, as PyTorch writes it (sluice/optimizer.h). sgd_test.c covers this file. */
#include "lib/kernels/sgd/sgd.h"

void slc_sgd_ref(const slc_sgd_args *args)
{
    const double *gradient = args->gradient;
    double *value = args->value, *buffer = args->buffer;
    for (uint64_t i = 0; i < args->count; i++) {
        double g = args->gradient_factor * gradient[i] + args->weight_decay * value[i], move = g;
        if (buffer) {
            buffer[i] = args->momentum * buffer[i] + args->rest * g;
            move = args->nesterov ? g + args->momentum * buffer[i] : buffer[i];
        }
        value[i] -= args->learning_rate * move;
    }
}
