/* Makes a profile for `sluice plan` of what an unchanged program communicated. One thread. */
#pragma once

#include "plugins/nccl/record/records.h"

/* Writes the profile to the file `out`. Compute times come from `compute`, the records of a run of the same program on
 * one rank, unless it is NULL. Errors: ARGUMENT (no period, no times: with the reason), PATH, IO, MEMORY. */
sluice_status slc_nccl_profile(const slc_nccl_records *records, const slc_nccl_records *compute,
                               uint64_t reserved_bytes, const char *out);
