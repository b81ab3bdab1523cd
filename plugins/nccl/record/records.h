/* The records of the NCCL shim are read from the files of one or more folders, those of running processes too. Nothing
 * in a file is trusted: a damaged one is refused with a sentence. One thread. */
#ifndef SLC_NCCL_RECORDS_H
#define SLC_NCCL_RECORDS_H

#include "lib/base/file/file.h"
#include "plugins/nccl/record/record.h"
#include <sluice/status.h>
#include <stdbool.h>
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
    int64_t begin_ns, end_ns; /* when it ran; both 0 where that is not known */
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

/* A file that was left out, because it is damaged or cannot be read. */
typedef struct {
    char *path, *why;
} slc_nccl_refused;

typedef struct {
    slc_nccl_process *processes; /* by communicator 0's rank where they share one, else by host and pid */
    size_t count;
    slc_nccl_refused *refused; /* each file once, as they were met */
    size_t refused_count;
} slc_nccl_records;

/* Reads every *.nccl file in these folders (a path may name one file too). Files that are removed meanwhile and files
 * whose header is not written yet are left out; so are damaged ones, which are refused. Numbers that others count with
 * are in range: rows and modules of entries exist, ranks lie in their communicator, times are neither negative nor
 * beyond 2^61, texts are UTF-8 without control characters. Errors: ARGUMENT where there is no file, PATH, IO and
 * MEMORY, and FORMAT with a file and what is wrong in it where none is left. The caller gives it back to
 * slc_nccl_records_free, after an error too. */
sluice_status slc_nccl_records_read(const char *const *paths, size_t path_count, slc_nccl_records *out);

/* Reads the same files again, and those that came since; cheap enough to be called ten times a second. Only the latest
 * 1024 entries are brought up to date, those that were being written, and new ones. A process whose file has been
 * removed has ended: what it wrote at last is read, and it stays so as long as it shares a communicator with one that
 * has a file. That no file is left is no error. Errors: PATH, IO (a folder), MEMORY; the records stay valid. */
sluice_status slc_nccl_records_again(const char *const *paths, size_t path_count, slc_nccl_records *records);

/* Says on standard error which files were refused, but for the first `told` of them. Returns how many are told now. */
size_t slc_nccl_records_tell_refused(const slc_nccl_records *records, size_t told);

void slc_nccl_records_free(slc_nccl_records *records);

const char *slc_nccl_operation_name(unsigned operation);       /* "all_reduce" */
const char *slc_nccl_pass_reason_name(unsigned reason);        /* NULL: there is none of this number */
const char *slc_nccl_dtype_name(unsigned dtype);               /* "float32" */
const char *slc_nccl_redop_name(unsigned redop);               /* "sum", "custom" */
const char *slc_nccl_state_name(slc_nccl_process_state state); /* "running" */
size_t slc_nccl_dtype_bytes(unsigned dtype);                   /* 0: not known */

/* The bytes of an entry's larger buffer: its count times the dtype's size, times the ranks for all_gather,
 * reduce_scatter, all_to_all, gather and scatter; 0 for what moves no data. At most 2^62. */
uint64_t slc_nccl_entry_bytes(const slc_nccl_process *process, const slc_nccl_entry *entry);

/* "MODULE+0xOFFSET" of an entry's caller, the module's file name only; "-" where it is not known. */
const char *slc_nccl_caller(const slc_nccl_process *process, const slc_nccl_entry *entry, char out[300]);

#endif
