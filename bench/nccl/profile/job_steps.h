/* The steps of a data-parallel job, found in what its ranks recorded: which all-reduces, reduce-scatters and
 * all-gathers of floating-point numbers repeat, and when each of them ran. One thread. */
#pragma once

#include "bench/nccl/profile/step_time.h"
#include "plugins/nccl/record/records.h"

/* An operation of the step: one call, or all calls of one group with the same operation. */
typedef struct {
    unsigned operation, dtype, redop;
    uint64_t elements, bytes; /* of the full buffer; of a group's buffers together */
    uint64_t *parts;          /* [part_count] elements of the full buffer of each call */
    size_t part_count;
} slc_step_operation;

typedef struct {
    int rank;
    slc_step_time *times; /* [step_count][operation_count] */
    bool *follows_step;   /* [step_count] nothing else lies between this step and the one before it */
    uint64_t *numbers;    /* [step_count] of the first call on its communicator: the same on all ranks; ascending */
    size_t step_count;
} slc_rank_steps;

typedef struct {
    uint32_t world; /* ranks of the communicator */
    uint64_t key;   /* of the communicator */
    slc_step_operation *operations;
    size_t operation_count;
    slc_rank_steps *ranks; /* those whose records are there, ascending */
    size_t rank_count;
    /* Calls of these ranks that are left out: captured into graphs; on other communicators; of other operations, types,
     * operators, or too short to be a part of the model. */
    uint64_t captured, elsewhere, other;
} slc_job_steps;

/* Finds the steps on the largest communicator that carries reductions (at least a hundredth of the bytes that another
 * one carries). A step begins where the run of steps does, or where it ends. If that is not known (the oldest entries
 * are gone and the program still runs), it begins after the reduction that most all-gathers follow, or else the longest
 * time without a reduction. Errors: ARGUMENT with the reason if no step is to be found, if the records have no
 * times, and if ranks differ; MEMORY. After an error nothing is to be freed. */
sluice_status slc_job_steps_find(const slc_nccl_records *records, slc_job_steps *out);
void slc_job_steps_free(slc_job_steps *steps);

static inline bool slc_step_reduces(const slc_step_operation *operation)
{
    return operation->operation != SLC_RECORD_ALL_GATHER;
}
