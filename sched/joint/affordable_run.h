/* Baselines cut units into runs. slc_affordable_run says how long the runs must be if a plan may take only a given
 * amount of work. */
#pragma once

#include "lib/plan/job.h"

/* Bytes of a run, at least `wanted`, with which a plan of fsdp takes at most `seconds` nominal seconds, about, or has
 * no unit that is cut. */
uint64_t slc_affordable_run(const slc_job *job, uint64_t wanted, double seconds);
