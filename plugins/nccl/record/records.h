/* The records of the NCCL shim are read from the files of one or more folders, those of running processes too. Nothing
 * in a file is trusted: a damaged one is refused with a sentence. One thread. */
#pragma once

#include "plugins/nccl/record/process.h"
#include <sluice/status.h>
#include <stdbool.h>
#include <stddef.h>

/* A file that was left out, because it is damaged or cannot be read. */
typedef struct {
    char *path, *why;
} slc_nccl_refused;

typedef struct {
    slc_nccl_process *processes; /* by communicator 0's rank if they share one, else by host and pid */
    size_t count;
    slc_nccl_refused *refused; /* each file once, as they were met */
    size_t refused_count;
} slc_nccl_records;

/* Reads every *.nccl file in these folders (a path may name one file too). Files that are removed meanwhile and files
 * whose header is not written yet are left out; so are damaged ones, which are refused. Numbers that others count with
 * are in range: rows and modules of entries exist, ranks lie in their communicator, times are neither negative nor
 * beyond 2^61, texts are UTF-8 without control characters. Errors: ARGUMENT if there is no file, PATH, IO and
 * MEMORY, and FORMAT with a file and what is wrong in it if none is left. The caller gives it back to
 * slc_nccl_records_free, after an error too. */
sluice_status slc_nccl_records_read(const char *const *paths, size_t path_count, slc_nccl_records *out);

/* Reads the same files again, and those that came since; cheap enough to be called ten times a second. Only new
 * entries, those that were being written and the latest 1024 are brought up to date. A process whose file has been
 * removed has ended: what it wrote at last is read, and the process stays as long as it shares a communicator with one
 * that has a file. It is no error if no file is left. Errors: PATH, IO (a folder), MEMORY; the records stay valid. */
sluice_status slc_nccl_records_again(const char *const *paths, size_t path_count, slc_nccl_records *records);

bool slc_nccl_share_communicator(const slc_nccl_process *a, const slc_nccl_process *b);

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

/* "MODULE+0xOFFSET" of an entry's caller, the module's file name only; "-" if it is not known. */
const char *slc_nccl_caller(const slc_nccl_process *process, const slc_nccl_entry *entry, char out[300]);
