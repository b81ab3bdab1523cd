/* The recorder holds what the shim knows of its process: the record file (record.h), which the first call that is
 * recorded makes, and the counters next to it. Private to plugins/nccl/shim. A process that was forked starts anew at
 * its own first call. */
#ifndef SLC_SHIM_RECORDER_H
#define SLC_SHIM_RECORDER_H

#include "plugins/nccl/shim/measure/driver.h"
#include "plugins/nccl/shim/library/real.h"
#include "plugins/nccl/record/record.h"
#include "plugins/nccl/shim/thread.h"
#include <sluice/status.h>
#include <stdatomic.h>
#include <stdbool.h>

typedef struct slc_shim_comm_table slc_shim_comm_table;
typedef struct slc_shim_transforms slc_shim_transforms; /* transforms.h */
enum { SLC_SHIM_CALLER_CACHE = 1024 }; /* return addresses whose module is known without asking the loader */

/* Everything that the file has is at these addresses, whether they are a file's or, where there was no room, private
 * memory. */
typedef struct slc_shim_recorder {
    slc_record_header *header;
    slc_record_communicator *rows;
    slc_record_module *modules;
    slc_record_entry *entries;
    slc_record_time *times;                  /* NULL without SLUICE_SHIM_TIME */
    uint64_t entry_mask;                     /* entry_count - 1 */
    _Atomic(const slc_shim_driver *) driver; /* CUDA's; NULL: not found, or not looked for yet */
    _Atomic bool library_is_noted;
    _Atomic bool driver_is_claimed, driver_is_known;
    _Atomic bool measures;                 /* the driver is there, and DONE or TIME is on */
    _Atomic bool time_is_off;              /* the driver refused */
    bool wants_done;                       /* SLUICE_SHIM_DONE */
    _Atomic uint64_t done_at;              /* the rows' address on devices; 0: streams write nothing */
    char *path;                            /* of the file; NULL: private memory */
    const slc_shim_transforms *transforms; /* NULL: off */
    struct slc_shim_recorder *parent;      /* of the process that this one was forked from */
    bool kept;                             /* whatever happens: the user asked for it */
    _Atomic bool fault;                    /* a call failed, or the process ended with an error: the file stays */
    _Atomic uint32_t groups, threads, inits;
    _Atomic(slc_shim_comm_table *) communicators;
    _Atomic uint64_t callers[SLC_SHIM_CALLER_CACHE];
    _Atomic int64_t callers_checked_ns;
    _Atomic unsigned long long loads; /* what the loader had loaded and unloaded then */
} slc_shim_recorder;

/* The process's recorder; made by the first call. Never NULL. */
slc_shim_recorder *slc_shim_recorder_get(void);
/* The same, NULL before the first call. */
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

/* Makes a new record and fills its header. Where a folder has little space the ring gets smaller; where there is no
 * room for a file, the record is in private memory, after a warning. */
void slc_shim_record_file_open(slc_shim_recorder *recorder, const slc_shim_record_layout *wanted);

/* Marks the record as ended; removes its file unless it is to stay, or others may wait for this process. */
void slc_shim_record_file_end(slc_shim_recorder *recorder);

#endif
