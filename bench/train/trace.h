/* The measured timeline of a training run: what the engine recorded of its last steps, all ranks in one file. */
#ifndef SLC_BENCH_TRAINING_TRACE_H
#define SLC_BENCH_TRAINING_TRACE_H

#include <sluice/runtime.h>

enum { SLC_TRAINING_TRACED_STEPS = 4 };

/* Collective, after sluice_runtime_sync; the runtime has recorded (slc_engine_record). Rank 0 gets the records of all
 * ranks and writes `path` (whole or not at all), a process for each rank. Ranks of one host share a clock; those of
 * others are aligned at a barrier, to about a message's way. On the communication lane an operation's slice begins when
 * it is open and the one before it is over. Errors: IO, MEMORY; those of a failed world. */
sluice_status slc_training_trace_write(sluice_runtime *rt, const char *path);

#endif
