/* Rows of a table: the operations SLC_GATHER_ROWS and SLC_REDUCE_ROWS.
 *
 * First every rank gets every list, from a neighbour's memory or as the messages of block 0. Then each rank of a pair
 * knows what it has to bring to the other. Neighbours read that where it lies. Messages bring it packed, chunk by
 * chunk, as blocks 1 and up (row_chunks.h). */
#pragma once

#include "lib/comm/lane/state.h"

/* Checks what only operations on rows need. Errors: ARGUMENT, UNSUPPORTED. */
sluice_status slc_row_op_check(const slc_comm *comm, const slc_op *op);
/* FORMAT says what is wrong with a rank's list. */
sluice_status slc_row_op_check_list(const slc_comm *comm, const slc_op *op, int rank);

/* Takes the other ranks' lists if all are here; true: they are, and active->block is 1. A list that is wrong fails the
 * world. */
bool slc_row_op_have_lists(slc_comm *comm, slc_active_op *active);
