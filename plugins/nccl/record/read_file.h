/* The file of one process. Private to plugins/nccl/record. */
#pragma once

#include "plugins/nccl/record/process.h"
#include <sluice/status.h>
#include <stdbool.h>

/* Reads the file at process->path: all of it if process->header is empty, else what may have changed since. *absent
 * becomes true if the file has been removed, or if its header is not written yet. If a removed file was open, what its
 * process wrote at last is read. */
sluice_status slc_nccl_file_read(slc_nccl_process *process, bool *absent);

/* Frees what reading has allocated, and the path. */
void slc_nccl_file_free(slc_nccl_process *process);

/* Says what has become of the process, from /proc if it is of this machine. */
slc_nccl_process_state slc_process_state_of(const slc_record_header *header);
