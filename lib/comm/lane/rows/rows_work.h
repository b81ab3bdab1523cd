/* The copying and adding of operations on rows. */
#pragma once

#include "lib/comm/lane/state.h"

/* Copies or adds about a chunk. True if it did anything. */
bool slc_row_op_work(slc_comm *comm, slc_active_op *active);
