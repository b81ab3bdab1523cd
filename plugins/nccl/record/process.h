/* The record of one process, as it is read from its file. */
#pragma once

#include "lib/base/file/file.h"
#include "plugins/nccl/record/record.h"
#include <stddef.h>

/* A committed entry, unpacked. */
typedef struct {
    uint64_t index;  /* the process's nth entry, from 0 */
    uint64_t number; /* on the communicator, from 1, with its high bits again */
    int64_t time_ns; /* CLOCK_MONOTONIC of the process's host */
    uint64_t count, send, receive, stream, caller;
    unsigned operation, dtype, redop, thread, group, flags;
    unsigned communicator; /* row, or SLC_RECORD_NO_COMMUNICATOR */
    unsigned module;       /* row, or SLC_RECORD_NO_MODULE */
    int peer;
    int64_t begin_ns, end_ns; /* when it ran; both 0 if that is not known */
} slc_nccl_entry;

typedef enum {
    SLC_NCCL_RUNNING,
    SLC_NCCL_STOPPED,  /* by a signal or a debugger */
    SLC_NCCL_GONE,     /* without an orderly end */
    SLC_NCCL_ENDED,    /* by exit */
    SLC_NCCL_ELSEWHERE /* of another machine, or of another boot of this one: its state cannot be known */
} slc_nccl_process_state;

/* One process's file at one moment. */
typedef struct {
    char *path;
    slc_record_header header; /* a copy; its texts end with 0 */
    slc_nccl_process_state state;
    slc_record_communicator *communicators; /* header.communicators rows, copies */
    slc_record_module *modules;             /* header.modules rows */
    slc_nccl_entry *entries;                /* ascending by index; those being written are left out */
    size_t entry_count;
    uint64_t entries_gone; /* the oldest, which the ring has lost */
    uint64_t read_from;    /* private to read_file.c, as is what follows */
    slc_file *kept;        /* open, so that a file that is removed can be read to its end; or NULL */
} slc_nccl_process;
