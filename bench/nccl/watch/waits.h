/* Finds who waits for whom: the ranks of a communicator that called something which others have not called yet, and the
 * ranks for which all others wait in the end. One thread. */
#pragma once

#include "bench/nccl/watch/findings.h"

typedef enum {
    SLC_NCCL_WAITS_FOR_COLLECTIVE,
    SLC_NCCL_WAITS_FOR_RECEIVE, /* it sent */
    SLC_NCCL_WAITS_FOR_SEND,    /* it receives */
    SLC_NCCL_WAITS_FOR_CREATION,
    SLC_NCCL_WAITS_FOR_THE_DEAD /* a rank is gone, and called as much as the others */
} slc_nccl_wait_kind;

typedef struct {
    slc_nccl_wait_kind kind;
    const slc_nccl_communicator *communicator;
    const slc_nccl_member *from, *to; /* to NULL: all ranks without a record */
    uint64_t ordinal;                 /* of the collective; of the send or receive between the two */
    const slc_nccl_entry *entry;      /* the call of `from`; NULL: it is not kept */
    bool ripe;                        /* it has lasted long enough, or nothing can end it any more */
} slc_nccl_wait;

typedef struct {
    slc_nccl_wait *rows;
    size_t count;
} slc_nccl_waits;

/* Adds a wait, unless it is known to be none: `from` has left the communicator, or is dead and `to` is not. Decides
 * whether it is ripe. Errors: MEMORY. */
sluice_status slc_nccl_waits_add(slc_nccl_waits *waits, const slc_nccl_members *all, double stall_s,
                                 const slc_nccl_wait *wait);

/* Adds the waits in a communicator: for collectives, for ranks that are missing and for ranks that are gone. Between
 * very many ranks some waits are left out, but each rank keeps one wait of its own and one of another rank for it.
 * Errors: MEMORY. */
sluice_status slc_nccl_waits_find(const slc_nccl_members *all, const slc_nccl_communicator *communicator,
                                  double stall_s, slc_nccl_waits *waits);

/* Adds findings for the ranks that others wait for and that wait for nobody, and for circles. Errors: MEMORY. */
sluice_status slc_nccl_waits_explain(const slc_nccl_members *all, const slc_nccl_waits *waits,
                                     slc_nccl_findings *findings);
