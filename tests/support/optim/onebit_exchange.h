/* The exchange of compressed optimizers for their tests: ranks simulated in one process, by the fast kernels and
 * plainly in float64 (DeepSpeed 0.16.4's compressed_allreduce), and how close the two must be. */
#pragma once

#include "lib/optim/compressed.h"
#include "tests/support/kernels/arrays.h"

enum { MOST_RANKS = 4, MOST_TENSORS = 6 };
static const double bar = 2e-6; /* relative to the sizes that the checks at the end of this file use */

double rms(const double *x, uint64_t count);

double largest(uint64_t count, const double *x);

/* The errors of one tensor: each rank's of compression, `all` long, and each server's. */
typedef struct {
    double *worker[MOST_RANKS], *server[MOST_RANKS];
    double size; /* the largest of the terms that were added up: where they cancel, rounding is relative to them */
} plain_errors;

/* x: one array for each rank; out: the result, equal on every rank; `count` elements exist of the padded length
 * `all`. */
void plain_exchange(uint32_t n, uint64_t count, uint64_t all, double *const *x, plain_errors *e, double *out);

/* The arrays that one unit exchanges, on all ranks. */
typedef struct {
    slc_compress_group group;
    slc_residue worker[MOST_RANKS][MOST_TENSORS], server[MOST_RANKS][MOST_TENSORS];
    void *worker_memory[MOST_RANKS], *server_memory[MOST_RANKS];
    char *packets[MOST_RANKS], *results;
} test_exchange;

void test_exchange_init(test_exchange *e, uint32_t tensors, const slc_compress_shape *shapes);

void test_exchange_fini(test_exchange *e);

/* Runs between compress and apply: makes the servers' results from everybody's packets. */
void test_exchange_run(test_exchange *e, sluice_stream *stream);

plain_errors plain_errors_of(const test_exchange *e, uint32_t tensor);

void plain_errors_fini(plain_errors *e);

void check_errors(const test_exchange *e, uint32_t tensor, const plain_errors *want);

/* Values are compared relative to |before| + |want|, momenta to their largest, variances each to itself. */
void check_values(uint64_t count, const float *got, const float *before, const double *want);

/* most_before: the largest momentum before the step, because a tensor of one element may have lost all of it. */
void check_momenta(uint64_t count, const float *got, double most_before, const double *want);

void check_variances(uint64_t count, const float *got, const double *want);
