/* The faults that the comparison of ranks found: each gets a line of text, a hint what to do, and JSON. One thread. */
#pragma once

#include "bench/nccl/watch/members.h"

#include <jansson.h>
#include <stdio.h>

/* The kinds from GONE to LAGS are about a rank that others wait for. */
typedef enum {
    SLC_NCCL_FOUND_DIFFERS, /* ranks called different operations, or with different arguments */
    SLC_NCCL_FOUND_UNEQUAL, /* a send and its receive have different sizes */
    SLC_NCCL_FOUND_CROSSED, /* two ranks use two communicators in different orders */
    SLC_NCCL_FOUND_FAILED,  /* NCCL refused one rank's call, and the others wait */
    SLC_NCCL_FOUND_GONE,    /* it died */
    SLC_NCCL_FOUND_STOPPED, /* it is stopped by a signal or a debugger */
    SLC_NCCL_FOUND_MISSING, /* it has no record, or has not come to create the communicator */
    SLC_NCCL_FOUND_ENDED,   /* it ended, or left the communicator, and others called more than it did */
    SLC_NCCL_FOUND_LAGS,    /* it does not call what the others called */
    SLC_NCCL_FOUND_SEND_UNMATCHED,
    SLC_NCCL_FOUND_RECEIVE_UNMATCHED,
    SLC_NCCL_FOUND_CIRCLE,     /* ranks wait for each other */
    SLC_NCCL_FOUND_UNFINISHED, /* all ranks called it, and their streams do not finish it */
    SLC_NCCL_FINDING_KINDS
} slc_nccl_finding_kind;

typedef struct {
    slc_nccl_finding_kind kind;
    uint64_t key;     /* the communicator's */
    uint64_t number;  /* of the collective on it, or of the send to its peer; 0: none */
    int64_t time_ns;  /* when the fault was complete, on the host of the rank that completed it */
    char *text;       /* one line, without its end */
    const char *hint; /* what to do, or NULL */
    json_t *json;     /* without kind, text and hint */
    FILE *out;        /* writes the text, until slc_nccl_finding_end */
    bool lost;        /* there was no memory for some of the JSON */
    bool *involved;   /* for each process: it takes part in the fault */
    size_t involved_count;
} slc_nccl_finding;

typedef struct {
    slc_nccl_finding *rows;
    size_t count;
} slc_nccl_findings;

const char *slc_nccl_finding_kind_name(slc_nccl_finding_kind kind); /* "differs" */

/* Adds an empty finding of the communicator, *begun, and begins its text with the communicator's name; afterwards the
 * text is written to its `out`, and slc_nccl_finding_end is called before another one begins. Errors: MEMORY. */
sluice_status slc_nccl_finding_begin(slc_nccl_findings *findings, slc_nccl_finding_kind kind,
                                     const slc_nccl_members *all, const slc_nccl_communicator *communicator,
                                     slc_nccl_finding **begun);
/* Closes the text of the last finding, and takes the finding away if something of it was lost. Errors: MEMORY. */
sluice_status slc_nccl_finding_end(slc_nccl_findings *findings);
void slc_nccl_finding_involve(slc_nccl_finding *finding, const slc_nccl_members *all, const slc_nccl_member *member);
/* The fault was not complete before the member made this call; NULL: before it last moved. */
void slc_nccl_finding_not_before(slc_nccl_finding *finding, const slc_nccl_member *member, const slc_nccl_entry *entry);
/* slc_nccl_finding_set puts a value into the JSON; slc_nccl_finding_append puts one at the end of a list there. Both
 * take `value` over; NULL: there was no memory for it. */
void slc_nccl_finding_set(slc_nccl_finding *finding, const char *key, json_t *value);
void slc_nccl_finding_append(slc_nccl_finding *finding, const char *key, json_t *value);

/* Moves finding `index` out of the list and frees it. */
void slc_nccl_finding_drop(slc_nccl_findings *findings, size_t index);
void slc_nccl_findings_free(slc_nccl_findings *findings);

/* Returns true if two findings are the same fault, seen at two moments. */
bool slc_nccl_finding_same(const slc_nccl_finding *a, const slc_nccl_finding *b);

/* [{"kind", "communicator", "operation", "text", "hint", …}]; NULL without memory. */
json_t *slc_nccl_findings_json(const slc_nccl_findings *findings);

/* "communicator 3f2a" */
void slc_nccl_write_name(FILE *out, const slc_nccl_communicator *communicator);
/* "rank 3", "ranks 0-2 and 5", from ascending ranks. */
void slc_nccl_write_ranks(FILE *out, const int *ranks, size_t count);
/* "all_reduce float32[1048576] sum" or "broadcast int8[4] root 2" */
void slc_nccl_write_call(FILE *out, const slc_nccl_entry *entry);
/* "float32[1024] (4096 bytes)" */
void slc_nccl_write_data(FILE *out, const slc_nccl_entry *entry);
/* " from train.so+0x1f3c", or nothing. */
void slc_nccl_write_caller(FILE *out, const slc_nccl_member *member, const slc_nccl_entry *entry);
/* "host a, pid 17" */
void slc_nccl_write_process(FILE *out, const slc_nccl_process *process);
/* "rank 1 (host a, pid 17)", or "rank 1 (rank 5 of the job's 8, host a, pid 17)" in a communicator of a part of them.
 */
void slc_nccl_write_member(FILE *out, const slc_nccl_member *member);

/* {"operation", "count", "dtype", "redop", "root" or "peer", "caller"}; NULL without memory. */
json_t *slc_nccl_call_json(const slc_nccl_member *member, const slc_nccl_entry *entry);
/* {"rank", "host", "pid", "state", "called"}; NULL without memory. */
json_t *slc_nccl_member_json(const slc_nccl_member *member);
