/* Signatures, by which ranks see whether they submitted the same operations. */
#pragma once

#include "lib/comm/lane/state.h"

/* Returns the signature of an operation. Operations that differ in kind, type, shape, place or in being skipped have
 * different signatures. */
uint64_t slc_op_signature(const slc_comm *comm, const slc_op *op, bool skipped);

/* True if all neighbours have begun this operation. MISMATCH fails the world if one has begun another operation. */
bool slc_peers_ready(slc_comm *comm, slc_active_op *active);
