/* For tests of optimizers with two moments: a parameter with its states, and the check that ranges change no bit. */
#ifndef SLC_OPTIM_OPTIMIZER_TEST_H
#define SLC_OPTIM_OPTIMIZER_TEST_H

#include "lib/kernels/kernel_test.h"

#include <sluice/optimizer.h>

enum { COUNT = 1007, STEPS = 20 };

typedef struct {
    float *value, *state[2];
    double norms[2]; /* of the last step, if the optimizer has norms */
} parameter;

TEST_INLINE parameter parameter_create(void)
{
    parameter p = {.value = test_uniform_floats(COUNT, -1, 1, 7), .state = {test_floats(COUNT), test_floats(COUNT)}};
    for (int s = 0; s < 2; s++) memset(p.state[s], 0, COUNT * sizeof(float));
    return p;
}

TEST_INLINE void parameter_destroy(parameter *p)
{
    free(p->value), free(p->state[0]), free(p->state[1]);
}

/* Runs steps 1..STEPS, each in ranges of `piece` elements. */
typedef void train_function(const sluice_optimizer *optimizer, parameter *p, uint64_t piece, bool no_decay);

TEST_INLINE void check_ranges_change_no_bit(const sluice_optimizer *optimizer, train_function *train)
{
    float *first[3] = {0};
    for (uint64_t piece = 16; piece < 2 * COUNT; piece = piece * 3 + 16) {
        parameter p = parameter_create();
        train(optimizer, &p, piece, false);
        test_same_bits("value", COUNT, p.value, &first[0]);
        test_same_bits("exp_avg", COUNT, p.state[0], &first[1]);
        test_same_bits("exp_avg_sq", COUNT, p.state[1], &first[2]);
        parameter_destroy(&p);
    }
    for (int i = 0; i < 3; i++) free(first[i]);
}

#endif
