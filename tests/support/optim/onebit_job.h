/* A run of one compressed optimizer for its tests, on ranks simulated in one process. */
#pragma once

#include "tests/support/optim/onebit_exchange.h"

enum { TEST_TENSORS = 6, TEST_STATES = 3, TEST_NO_DECAY = 1, TEST_STILL = 4 /* its gradients are all zero */ };
static const uint64_t test_counts[TEST_TENSORS] = {1003, 70, 0, 1, 135, 6011};

typedef struct {
    uint32_t ranks, threads;
    bool exchanged; /* else the compressed phase goes on with averaged gradients */
    sluice_dtype gradient_dtype;
} onebit_mode;

typedef struct {
    onebit_mode mode;
    const void *settings; /* settings of the optimizer */
    bool fuses;
    double rate;
    sluice_stream stream;
    slc_compressed onebit;
    float *value[TEST_TENSORS], *state[TEST_TENSORS][TEST_STATES];
    uint16_t *rounded[TEST_TENSORS]; /* for odd ones only */
    void *gradient[MOST_RANKS][TEST_TENSORS], *average[TEST_TENSORS];
    float *flat[MOST_RANKS];
    uint64_t elements, flat_elements;
    test_exchange exchange;
} onebit_job;

/* The caller has set settings, rate, stream and onebit. */
void onebit_job_begin(onebit_job *j, const onebit_mode *mode, bool fuses);

void onebit_job_destroy(onebit_job *j);

/* Draws gradients in which every eleventh element is always 0. */
void test_draw_gradients(onebit_job *j, uint64_t step);

void test_free_gradients(onebit_job *j);

sluice_update test_update_of(const onebit_job *j, uint64_t step, uint32_t t, const void *gradient);

/* The arrays of a rank in the interface's form; `updates` and `flat` hold them for *unit. */
void test_make_unit(onebit_job *j, uint64_t step, uint32_t rank, sluice_update updates[TEST_TENSORS],
                    slc_onebit_unit *unit, float *flat[TEST_TENSORS]);

/* Replicas are equal, so the values of one serve for all; but each rank has its own padding. Returns the lowest bad
 * parameter. */
uint32_t test_exchange_step(onebit_job *j, uint64_t step);

/* Runs a whole step of all ranks; averaged gradients go in pieces. */
uint32_t onebit_job_step(onebit_job *j, uint64_t step, uint64_t piece);

/* Returns a drawn gradient as the optimizer uses it. */
double test_gradient_at(const onebit_job *j, const void *gradient, uint64_t i);
