/* Small calls that follow each other could go together: between ncclGroupStart and ncclGroupEnd, or fused there. One
 * thread. */
#pragma once

#include "plugins/nccl/record/records.h"

/* The estimate of a gain is made of these. Fusing n operations of V bytes each pays when
 * (n - 1) alpha > 2 kappa + 4 sum V / M: the operations that are saved, against two kernels that copy, which read and
 * write all bytes. */
typedef struct {
    double alpha_s;         /* one more operation, called apart */
    double grouped_alpha_s; /* one more operation in a group */
    double kappa_s;         /* launching a copy */
    double memory_bytes_per_s;
    bool alpha_is_measured; /* else a usual value of a GPU, as the others are */
} slc_nccl_fusing_costs;

/* Sequences of one shape: n neighbouring calls of one thread, alike but for their counts, on one communicator and
 * stream, in one group (`grouped`), or in none and not 50 us apart: neither the calls nor, if times are known, the
 * operations. */
typedef struct {
    const slc_nccl_process *process; /* of the first one */
    const slc_nccl_entry *first;
    bool grouped;
    uint64_t calls, bytes;   /* of a sequence */
    uint64_t count;          /* such sequences, on all ranks */
    double saved_s, spent_s; /* both sides, for a sequence */
} slc_nccl_sequence;

typedef struct {
    slc_nccl_fusing_costs costs;
    slc_nccl_sequence *sequences; /* those that would gain, the largest gain first */
    size_t count;
} slc_nccl_grouping;

/* Errors: MEMORY. Free it after an error too. */
sluice_status slc_nccl_grouping_find(const slc_nccl_records *records, slc_nccl_grouping *out);
void slc_nccl_grouping_free(slc_nccl_grouping *grouping);
