/* The chunks in which messages bring the rows of operations: chunk k of an owner's part of the table ends where some
 * rank's list has just filled a message, so that an owner has all contributions to a chunk's elements at the same time.
 * Every rank finds the same cuts. A chunk takes a slot of scratch: half of each peer's part to receive into, half to
 * send from. */
#pragma once

#include "lib/comm/lane/state.h"

slc_row_list *slc_row_op_list_of(const slc_op *op, int rank);
/* Elements that the list of `holder` has of [from, end), in the part of `owner`. */
uint64_t slc_row_op_elements(const slc_comm *comm, const slc_op *op, int holder, int owner, uint64_t from,
                             uint64_t end);
/* Cuts chunk number active->receiving; false: there is none, and active->end_block is final. */
bool slc_row_op_cut(slc_comm *comm, slc_active_op *active);
/* [size] where chunk `chunk` ends in each owner's part of the table. */
uint64_t *slc_row_op_cuts(const slc_comm *comm, const slc_active_op *active, uint64_t chunk);
/* Bytes that `peer` sends for a chunk. */
uint64_t slc_row_op_expected(const slc_comm *comm, const slc_active_op *active, uint64_t chunk, int peer);
/* Packs what `peer` gets of a chunk, *bytes of it, in scratch. */
const char *slc_row_op_pack(slc_comm *comm, slc_active_op *active, uint64_t chunk, int peer, uint64_t *bytes);
