/* The runs of `priority`, which a caller may find to be too many. */
#pragma once

#include "lib/plan/times.h"

/* The bytes into which `priority` cuts units: the run that saturates the link as measured, but not less than what
 * saturates it by its lines: V (N-1) / (N bandwidth) = 19 (N-1) latency, 95 % of the bandwidth. A profile for other
 * ranks than those of the measurement has a run that is too short. `times` NULL: ByteScheduler's own. */
uint64_t slc_partition_bytes(const slc_job *job, const slc_times *times);
