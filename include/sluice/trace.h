/* The measured timeline of a job: when each slot, operation and update of the last steps ran, on all ranks. */
#ifndef SLUICE_TRACE_H
#define SLUICE_TRACE_H

#include <sluice/runtime.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Begins to record what steps begin from now on. Called after commit, between steps. Local; a stage of a pipeline waits
 * until the last step's messages have arrived. A record costs two clock readings; 1.5 MiB are kept outside of the
 * budget, in which the latest records of a thread replace the oldest. Errors: MEMORY, ORDER, and in a pipeline those of
 * a failed world. */
SLUICE_API sluice_status sluice_runtime_record(sluice_runtime *rt);

/* Gives the last four steps of the plan that runs, for Perfetto and Chrome's tracing page (trace event format, JSON
 * object form): a process for each rank, with its memory, and in a pipeline a lane for each channel. Collective,
 * between steps, after sluice_runtime_sync; every rank has recorded. Rank 0 gets the text, which it frees; the others
 * get NULL. Ranks of one host share a clock; those of other hosts are aligned at a barrier, to about the time that a
 * message takes. On the communication lane the slice of an operation begins when it is open and the one before it is
 * over. Errors: ARGUMENT (no runtime, no place for the result); ORDER (before commit, in a step, without
 * sluice_runtime_record); MEMORY; those of a failed world. */
SLUICE_API sluice_status sluice_runtime_trace(sluice_runtime *rt, char **json);

#ifdef __cplusplus
}
#endif
#endif
