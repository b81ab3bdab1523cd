/* The copying and adding of operations on rows. */
#ifndef SLC_COMM_ROWS_WORK_H
#define SLC_COMM_ROWS_WORK_H

#include "lib/comm/lane/state.h"

/* Copies or adds about a chunk. True if it did anything. */
bool slc_row_op_work(slc_comm *comm, slc_active_op *active);

#endif
