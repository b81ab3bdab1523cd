/* The summary adds up what the ranks communicated. One thread. */
#pragma once

#include "bench/nccl/summary/grouping.h"
#include "bench/nccl/steps/steps.h"

#include <jansson.h>
#include <stdio.h>

/* A rank of a communicator: the row of a process. */
typedef struct {
    const slc_nccl_process *process;
    const slc_record_communicator *row;
    size_t communicator;
} slc_nccl_rank;

/* The transforms' work on a communicator: calls fused, into how many groups; calls compressed, from and to how many
 * bytes; calls that passed unchanged, by reason. */
typedef struct {
    uint64_t fused_calls, fused_groups, compressed_calls, bytes_compressed, bytes_sent;
    uint64_t passed[SLC_RECORD_PASS_REASONS];
} slc_nccl_transformed;

typedef struct {
    uint64_t key, parent_key;
    int size;             /* 0: not known */
    slc_nccl_rank *ranks; /* those with a record, in order */
    size_t rank_count;
    size_t first_row; /* the lowest of its rows in the processes: which came before others */
    uint64_t calls;   /* of all these ranks, also those whose entries are lost */
    slc_nccl_transformed transformed;
} slc_nccl_communicator_sum;

/* The calls of one operation and dtype on one communicator whose entries are kept, of all its ranks. */
typedef struct {
    const slc_nccl_communicator_sum *communicator;
    unsigned operation, dtype;
    uint64_t calls, bytes;
    uint64_t timed_calls, timed_bytes; /* those of them whose times are known, and how long they took */
    double timed_s;
} slc_nccl_traffic;

enum { SLC_NCCL_SIZE_CLASSES = 32 };

typedef struct {
    uint64_t calls, bytes;
} slc_nccl_size_class;

/* The time that NCCL ran on a process's streams; overlapping operations count once. */
typedef struct {
    double busy_s, span_s; /* span: from the first operation's beginning to the last one's end */
} slc_nccl_busy;

/* The steps of a process on one of its devices. */
typedef struct {
    const slc_nccl_process *process;
    int device, rank; /* the rank in the first communicator on that device */
    slc_nccl_steps steps;
} slc_nccl_device_steps;

typedef struct {
    const slc_nccl_records *records;
    slc_nccl_rank *ranks; /* of all communicators, by key */
    size_t rank_count;
    slc_nccl_communicator_sum *communicators; /* in the order in which they were made */
    size_t communicator_count;
    slc_nccl_traffic *traffic; /* by communicator, operation and dtype */
    size_t traffic_count;
    slc_nccl_size_class sizes[SLC_NCCL_SIZE_CLASSES]; /* class n: calls of at most 4^n bytes and more than 4^(n-1) */
    slc_nccl_busy *busy;                              /* of each process; 0 if no time is known */
    slc_nccl_device_steps *steps;
    size_t steps_count;
    slc_nccl_grouping grouping;
    uint64_t entries, entries_lost, entries_written; /* begun; of them gone round; of them being written, or damaged */
    uint64_t communicators_lost, times_lost;
    uint64_t captured, failed; /* entries with these flags */
} slc_nccl_summary;

/* The records must outlive the summary. Errors: MEMORY. Free it after an error too. */
sluice_status slc_nccl_summarize(const slc_nccl_records *records, slc_nccl_summary *out);
void slc_nccl_summary_free(slc_nccl_summary *summary);

/* The bytes on the busiest link for each byte of the buffer, as nccl-tests counts them (doc/PERFORMANCE.md). */
double slc_nccl_bus_factor(unsigned operation, int ranks);

void slc_nccl_summary_print(const slc_nccl_summary *summary, FILE *out);

/* Returns the summary as JSON, as docs/formats.md describes it; NULL: no memory. */
json_t *slc_nccl_summary_json(const slc_nccl_summary *summary);
