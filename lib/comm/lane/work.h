/* The copying and adding of operations, a chunk at a time. */
#pragma once

#include "lib/comm/lane/state.h"

/* Adds or copies one chunk of an operation. True if it did. */
bool slc_work_step(slc_comm *comm, slc_active_op *active);
