/* The recorder holds what the shim knows of its process: the record file (record.h), which the first call that is
 * recorded makes, and the counters next to it. Private to plugins/nccl/shim. A process that was forked starts anew at
 * its own first call. */
#pragma once

#include "plugins/nccl/shim/state.h"

/* The process's recorder; made by the first call. Never NULL. */
slc_shim_recorder *slc_shim_recorder_get(void);
/* Returns the process's recorder if a first call has made it, else NULL. */
slc_shim_recorder *slc_shim_recorder_made(void);

/* Writes into the header which library calls go to; the first one of the process counts. */
void slc_shim_recorder_note_library(slc_shim_recorder *recorder, const slc_shim_real *real);

/* The calling thread's state, with numbers of this recorder. */
slc_shim_thread *slc_shim_thread_get(slc_shim_recorder *recorder);

/* ---- Private to recorder.c and record_file.c ---- */

typedef struct {
    size_t entry_count;
    bool times;
} slc_shim_record_layout;

/* Makes a new record and fills its header. If a folder has little space, the ring gets smaller; if there is no room for
 * a file, the record is in private memory, after a warning. */
void slc_shim_record_file_open(slc_shim_recorder *recorder, const slc_shim_record_layout *wanted);

/* Marks the record as ended; removes its file unless it is to stay, or others may wait for this process. */
void slc_shim_record_file_end(slc_shim_recorder *recorder);
