/* Ranks simulated in one process, for tests of 0/1 Adam, and a step of theirs as an engine makes it. */
#pragma once

#include "tests/support/optim/onebit_exchange.h"

enum { TENSORS = 3 };

typedef struct {
    uint32_t ranks;
    uint64_t count; /* elements of the first tensor; the others have none and one */
    bool compat, mask, onebit;
    double weight_decay;
    sluice_dtype gradient_dtype;
    uint64_t freeze, scaler, local_scaler, clipper;
} mode;

typedef struct {
    mode mode;
    sluice_stream stream;
    slc_compressed optimizer;
    test_exchange exchange;
    slc_compress_shape shapes[TENSORS];
    float *value[MOST_RANKS][TENSORS], *state[MOST_RANKS][2][TENSORS], *local[MOST_RANKS][2][TENSORS];
    uint16_t *rounded[MOST_RANKS][TENSORS];
    float *gradient[MOST_RANKS][TENSORS]; /* this step's; all hold the average if the step averages */
    bool resets;                          /* errors must be zeroed before the next step */
} job;

/* Creates j->optimizer for j->mode. zero_one_job_init does all of it. */
void zero_one_job_optimizer(job *j);
void zero_one_job_init(job *j, const mode *c);
void zero_one_job_fini(job *j);

/* The learning rate of a step, 0 in some. */
double rate_at(uint64_t step);

/* The arrays of a unit in the interface's form. */
typedef struct {
    sluice_update tensors[TENSORS];
    void *gradients[TENSORS];
    slc_onebit_unit unit;
} unit_of_rank;

void unit_of_rank_init(unit_of_rank *u, job *j, uint64_t step, uint32_t rank);
void unit_of_rank_fini(unit_of_rank *u);

/* Gives `run` the unit of each rank. */
void each_rank(job *j, uint64_t step, sluice_status (*run)(void *, const slc_onebit_unit *, uint32_t *), uint32_t *bad);

/* The calls that begin and end a step of the optimizer, with what they ask for. */
void end_step(job *j, uint64_t step);
slc_step_mode begin_step(job *j, uint64_t step, bool now);

/* Carries a step out after begin_step, as an engine does. Returns the lowest tensor that was not finite, or else
 * UINT32_MAX; with such a tensor the step is skipped, or fails, without end_step. */
uint32_t finish_step(job *j, uint64_t step, slc_step_mode how);

/* Gives every rank the average of all ranks' gradients. */
void average_gradients(job *j);
void free_gradients(job *j);
