/* A parameter with its states, for tests of optimizers with two moments, and the checks that such an optimizer agrees
 * with float64, and that neither ranges nor streams change a bit. */
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

/* The update in step `step` of a range that begins at element `at` and has `piece` elements, or what is left. The rate
 * is 1e-2 / step. */
sluice_update two_moments_range(const parameter *p, const float *gradient, uint64_t at, uint64_t piece, uint64_t step,
                                bool no_decay);

/* Runs steps 1..STEPS, each in ranges of `piece` elements. */
typedef void train_function(const sluice_optimizer *optimizer, parameter *p, uint64_t piece, bool no_decay);

/* Updates run on the optimizer's own stream or bring one, on the host and on a GPU. */
typedef sluice_status create_function(sluice_stream *stream, sluice_optimizer *out);

/* Makes the steps of `train` by the formula: w: values, m, v: the states, which begin as 0. */
typedef void float64_function(double *w, double *m, double *v, bool no_decay);

/* The optimizer, which has this name, must come to what float64 comes to. `look`, if it is not NULL, sees the parameter
 * after the last step. */
void check_agrees_with_float64(const char *name, create_function *create, train_function *train,
                               float64_function *in_float64, void (*look)(const parameter *p, bool no_decay));

void check_ranges_and_streams_change_no_bit(create_function *create, train_function *train);
