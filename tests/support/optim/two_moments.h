/* For tests of optimizers with two moments: a parameter with its states, and the check that neither ranges nor
 * streams change a bit. */
#pragma once

#include "tests/support/kernels/arrays.h"

#include <sluice/optimizer.h>

enum { COUNT = 1007, STEPS = 20 };

typedef struct {
    float *value, *state[2];
    double *norms;         /* two of the last step, if the optimizer has norms */
    sluice_stream *stream; /* brought by every update; NULL: the optimizer's own */
} parameter;

parameter two_moments_create(void);
void two_moments_destroy(parameter *p);

/* Runs steps 1..STEPS, each in ranges of `piece` elements. */
typedef void train_function(const sluice_optimizer *optimizer, parameter *p, uint64_t piece, bool no_decay);

/* Updates run on the optimizer's own stream or bring one, on the host and on a GPU. */
typedef sluice_status create_function(sluice_stream *stream, sluice_optimizer *out);

void check_ranges_and_streams_change_no_bit(create_function *create, train_function *train);
