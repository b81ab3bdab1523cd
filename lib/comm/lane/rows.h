/* Rows of a table: the operations SLC_GATHER_ROWS and SLC_REDUCE_ROWS.
 *
 * First every rank gets every list, from a neighbour's memory or as the messages of block 0. Then each rank of a pair
 * knows what it has to bring to the other. Neighbours read that where it lies. Messages bring it packed, chunk by
 * chunk, as blocks 1 and up: chunk k of an owner's part of the table ends where some rank's list has just filled a
 * message, so that an owner has all contributions to a chunk's elements at the same time. Every rank finds the same
 * cuts. A chunk takes a slot of scratch: half of each peer's part to receive into, half to send from. */
#ifndef SLC_COMM_ROWS_H
#define SLC_COMM_ROWS_H

#include "lib/comm/lane/lane.h"

static inline bool slc_moves_rows(const slc_op *op)
{
    return op->kind == SLC_GATHER_ROWS || op->kind == SLC_REDUCE_ROWS;
}

static inline bool slc_gathers(const slc_op *op)
{
    return op->kind == SLC_GATHER_ROWS;
}

/* rows.c */
/* Checks what only operations on rows need. Errors: ARGUMENT, UNSUPPORTED. */
sluice_status slc_row_op_check(const slc_comm *comm, const slc_op *op);
sluice_status slc_row_op_check_list(const slc_op *op, int rank); /* FORMAT says what is wrong with a rank's list */
/* Takes the other ranks' lists if all are here; true: they are, and run->block is 1. A list that is wrong fails the
 * world. */
bool slc_row_op_have_lists(slc_comm *comm, slc_active_op *run);

/* row_chunks.c */
slc_row_list *slc_row_op_list_of(const slc_op *op, int rank);
/* Elements that the list of `holder` has of [from, end), in the part of `owner`. */
uint64_t slc_row_op_elements(const slc_comm *comm, const slc_op *op, int holder, int owner, uint64_t from,
                             uint64_t end);
/* Cuts chunk number run->receiving; false: there is none, and run->end_block is final. */
bool slc_row_op_cut(slc_comm *comm, slc_active_op *run);
/* [size] where chunk `chunk` ends in each owner's part of the table. */
uint64_t *slc_row_op_cuts(const slc_comm *comm, const slc_active_op *run, uint64_t chunk);
/* Bytes that `peer` sends for a chunk. */
uint64_t slc_row_op_expected(const slc_comm *comm, const slc_active_op *run, uint64_t chunk, int peer);
/* Packs what `peer` gets of a chunk, *bytes of it, in scratch. */
const char *slc_row_op_pack(slc_comm *comm, slc_active_op *run, uint64_t chunk, int peer, uint64_t *bytes);

/* rows_work.c */
/* Copies or adds about a chunk. True if it did anything. */
bool slc_row_op_work(slc_comm *comm, slc_active_op *run);

#endif
