/* Compares what the ranks of each communicator called, and tells the faults: what ranks called differently, and whom
 * they wait for. A pure function of the records; nothing in it reads a clock or a file. One thread. */
#pragma once

#include "bench/nccl/watch/findings.h"

/* `quiet_s` has, for each process, the seconds since its record last changed; a rank that others wait for counts as
 * late when nothing has moved for `stall_s`. Tells causes and leaves out their consequences. A call that a process made
 * while the records were read may look like a fault, so only a fault that is seen at two moments is one. Errors:
 * MEMORY. Free the findings after an error too. */
sluice_status slc_nccl_compare(const slc_nccl_records *records, const double *quiet_s, double stall_s,
                               slc_nccl_findings *out);
