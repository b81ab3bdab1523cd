/* Operations of a pass as collectives and calls of the communication thread. Private to lib/engine. */
#pragma once

#include "lib/comm/comm.h"
#include "lib/engine/step/pass_state.h"

/* Makes the collective (or call) of an operation. The caller sets its waits. */
sluice_status slc_operation_fill(sluice_runtime *rt, slc_pass *pass, uint32_t item, slc_operation *context, slc_op *op);
