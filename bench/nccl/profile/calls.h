/* Finds the communicator on which a job is data parallel, and collects what each of its ranks calls there. Private to
 * bench/nccl. */
#pragma once

#include "bench/nccl/profile/step_time.h"
#include "plugins/nccl/record/records.h"

/* An operation as a rank calls it: one entry, or all entries of a group with the same operation. */
typedef struct {
    unsigned operation, dtype, redop, group;
    uint64_t elements, bytes, address, stream, number;
    size_t first_part, part_count; /* in slc_rank_calls.parts */
    slc_step_time time;
} slc_nccl_call;

/* A rank: one device of one process. */
typedef struct {
    const slc_nccl_process *process;
    int device, rank;
    slc_nccl_call *calls;
    size_t call_count;
    uint64_t *parts;
    size_t part_count;
} slc_rank_calls;

typedef struct {
    uint32_t world;
    uint64_t key;
    slc_rank_calls *ranks; /* ascending */
    size_t rank_count;
    uint64_t captured, elsewhere, other;
} slc_job_calls;

/* Errors as slc_job_steps_find. The caller gives it back to slc_job_calls_free, after an error too. */
sluice_status slc_job_calls_collect(const slc_nccl_records *records, slc_job_calls *out);
void slc_job_calls_free(slc_job_calls *calls);
