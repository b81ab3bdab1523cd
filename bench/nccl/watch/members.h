/* The communicators of some records, matched by their keys over processes, with each rank's calls sorted out: what the
 * comparison of ranks works on. One thread. */
#pragma once

#include "plugins/nccl/record/records.h"

/* One rank of a communicator, as its process recorded it. Entries are those kept, in order of their numbers. A call
 * that returned an error is in no list: NCCL did not take it. */
typedef struct {
    const slc_nccl_process *process;
    const slc_record_communicator *row;
    size_t node; /* the process and its device: what computes, and waits as one */
    int rank;
    const slc_nccl_entry **collectives;
    size_t collective_count;
    uint64_t first;  /* ordinal, from 1, of collectives[0] among the rank's collectives; 0: it is not known */
    uint64_t called; /* the ordinal of the last collective called */
    const slc_nccl_entry **exchanges; /* sends and receives */
    size_t exchange_count;
    size_t failed_count;          /* calls that returned an error */
    size_t failed_collectives;    /* of them */
    const slc_nccl_entry *failed; /* the last of them */
    bool vanished;                /* its record was removed at an orderly end: it may have called more */
    bool whole;                   /* no collective, send or receive is lost */
    bool still;                   /* its row and its entries belong together: nothing was being written */
    const slc_nccl_entry *last;   /* collective, send or receive; NULL: none is kept */
    int64_t touched_ns;           /* when it last called anything on this communicator; 0: nothing is kept */
    double quiet_s;               /* since then */
} slc_nccl_member;

typedef struct {
    uint64_t key;
    int size;                 /* 0: not known yet */
    slc_nccl_member *members; /* by rank; a rank whose record is not there has none */
    size_t member_count;
} slc_nccl_communicator;

/* A process on one device. */
typedef struct {
    const slc_nccl_process *process;
    size_t process_index;
    int device;
    double quiet_s; /* since its last call, or since its record last changed */
    bool dead;      /* it will call nothing any more */
} slc_nccl_node;

typedef struct {
    const slc_nccl_records *records;
    slc_nccl_communicator *communicators;
    size_t communicator_count;
    slc_nccl_member *members; /* of all communicators */
    slc_nccl_node *nodes;
    size_t node_count;
    const slc_nccl_entry **entries; /* the members' lists */
} slc_nccl_members;

/* `quiet_s` has, for each live process, the seconds since its record last changed; the records must outlive the
 * members. Errors: MEMORY. Free it after an error too. */
sluice_status slc_nccl_members_find(const slc_nccl_records *records, const double *quiet_s, slc_nccl_members *out);
void slc_nccl_members_free(slc_nccl_members *members);

/* The member's entry of the nth collective, from 1; NULL: it is not kept, or was not called. */
const slc_nccl_entry *slc_nccl_member_collective(const slc_nccl_member *member, uint64_t ordinal);

/* The member of this rank, or NULL. */
const slc_nccl_member *slc_nccl_member_of(const slc_nccl_communicator *communicator, int rank);

/* Either "operation" or, if sends and receives are numbered in between, "collective": what ordinals count. */
const char *slc_nccl_ordinal_name(const slc_nccl_communicator *communicator);

/* Returns true if two calls of one node are in the same stream. cudaStreamPerThread is another one in each thread. */
bool slc_nccl_same_stream(const slc_nccl_entry *a, const slc_nccl_entry *b);

/* The process is gone or has ended: nothing will be added to its record. */
bool slc_nccl_process_is_dead(const slc_nccl_process *process);

/* The rank has destroyed, finalized or aborted its communicator. */
bool slc_nccl_member_has_left(const slc_nccl_member *member);
