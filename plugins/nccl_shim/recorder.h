/* The recorder holds what the shim knows of its process: the record file (record.h), which the first call that is
 * recorded makes, and the counters next to it. Private to plugins/nccl_shim. A process that was forked starts anew at
 * its own first call. */
#ifndef SLC_NCCL_SHIM_RECORDER_H
#define SLC_NCCL_SHIM_RECORDER_H

#include "plugins/nccl_shim/measure/driver.h"
#include "plugins/nccl_shim/real.h"
#include "plugins/nccl_shim/record.h"
#include <sluice/status.h>
#include <stdatomic.h>
#include <stdbool.h>

typedef struct slc_comm_table slc_comm_table;
typedef struct slc_transforms slc_transforms;       /* transforms.h */
typedef struct slc_group_streams slc_group_streams; /* measure.c */
enum { SLC_CALLER_CACHE = 1024 }; /* return addresses whose module is known without asking the loader */

/* Everything that the file has is at these addresses, whether they are a file's or, where there was no room, private
 * memory. */
typedef struct slc_recorder {
    slc_record_header *header;
    slc_record_communicator *rows;
    slc_record_module *modules;
    slc_record_entry *entries;
    slc_record_time *times;             /* NULL without SLUICE_SHIM_TIME */
    uint64_t entry_mask;                /* entry_count - 1 */
    _Atomic(const slc_driver *) driver; /* CUDA's; NULL: not found, or not looked for yet */
    _Atomic bool library_is_noted;
    _Atomic bool driver_is_claimed, driver_is_known;
    _Atomic bool measures;            /* the driver is there, and DONE or TIME is on */
    _Atomic bool time_is_off;         /* the driver refused */
    bool wants_done;                  /* SLUICE_SHIM_DONE */
    _Atomic uint64_t done_at;         /* the rows' address on devices; 0: streams write nothing */
    char *path;                       /* of the file; NULL: private memory */
    const slc_transforms *transforms; /* NULL: off */
    struct slc_recorder *parent;      /* of the process that this one was forked from */
    bool kept;                        /* whatever happens: the user asked for it */
    _Atomic bool fault;               /* a call failed, or the process ended with an error: the file stays */
    _Atomic uint32_t groups, threads, inits;
    _Atomic(slc_comm_table *) communicators;
    _Atomic uint64_t callers[SLC_CALLER_CACHE];
    _Atomic int64_t callers_checked_ns;
    _Atomic unsigned long long loads; /* what the loader had loaded and unloaded then */
} slc_recorder;

/* One thread's state. */
typedef struct {
    const slc_recorder *recorder;  /* that the numbers below belong to */
    const slc_nccl_real *inside;   /* while a call of ours runs in it: what arrives then is NCCL's own call */
    unsigned depth;                /* of groups */
    unsigned number;               /* of the thread, from 1; 0: not known, or too large */
    uint32_t group;                /* number of the outermost group */
    uint32_t libraries;            /* a bit for each library but the default one in which the group was begun too */
    uint64_t group_first;          /* an index not above those of the group's entries */
    struct slc_shim_comm *pending; /* communicators that the group makes */
    slc_group_streams *streams;    /* that the group uses, to be measured */
    void *transforms;              /* what transforms hold until the group ends */
} slc_shim_thread;

extern _Thread_local slc_shim_thread slc_this_thread;

extern _Atomic(slc_recorder *) slc_recorder_current; /* use slc_recorder_get */
slc_recorder *slc_recorder_start(void);

/* The process's recorder; made by the first call. Never NULL. */
static inline slc_recorder *slc_recorder_get(void)
{
    slc_recorder *recorder = atomic_load_explicit(&slc_recorder_current, memory_order_acquire);
    return __builtin_expect(recorder != NULL, 1) ? recorder : slc_recorder_start();
}

/* Writes into the header which library calls go to; the first one of the process counts. */
void slc_recorder_note_library(slc_recorder *recorder, const slc_nccl_real *real);

/* The calling thread's state, with numbers of this recorder. */
slc_shim_thread *slc_thread_enter(slc_recorder *recorder);
static inline slc_shim_thread *slc_thread_get(slc_recorder *recorder)
{
    slc_shim_thread *thread = &slc_this_thread;
    return __builtin_expect(thread->recorder == recorder, 1) ? thread : slc_thread_enter(recorder);
}

/* The module's row and the offset of an address, as an entry's caller_module_redop holds them. `now_ns` is
 * CLOCK_MONOTONIC's: once a second it is looked whether the loader has changed what lies where. */
uint64_t slc_module_caller(slc_recorder *recorder, const void *address, int64_t now_ns);

/* ---- Private to recorder.c and record_file.c ---- */

typedef struct {
    size_t entry_count;
    bool times;
} slc_record_layout;

/* Makes a new record and fills its header. Where a folder has little space the ring gets smaller; where there is no
 * room for a file, the record is in private memory, after a warning. */
void slc_record_file_open(slc_recorder *recorder, const slc_record_layout *wanted);

/* Marks the record as ended; removes its file unless it is to stay, or others may wait for this process. */
void slc_record_file_end(slc_recorder *recorder);

#endif
