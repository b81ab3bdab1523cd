/* The timeline of recorded calls. One thread. */
#pragma once

#include "plugins/nccl/record/records.h"

/* Writes a timeline for Perfetto or chrome://tracing: for each process a lane for each thread that called and one for
 * each stream whose times are known. Processes of several hosts share the hosts' clocks. Errors: PATH, IO, MEMORY. */
sluice_status slc_nccl_timeline_write(const slc_nccl_records *records, const char *path);
