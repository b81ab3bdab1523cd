/* The operations of a group are timed together. One thread. */
#pragma once

#include "plugins/nccl/record/records.h"

typedef struct {
    double seconds;   /* the entry's share of the time, by bytes; 0: no time is known */
    uint32_t members; /* entries that were timed together; 1: it alone */
    bool first;       /* of them */
    uint64_t bytes;   /* of all of them */
} slc_nccl_time_share;

/* `shares` has room for each entry of the process. Errors: MEMORY. */
sluice_status slc_nccl_time_shares_find(const slc_nccl_process *process, slc_nccl_time_share *shares);
