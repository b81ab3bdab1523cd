/* The bytes of the attached arena that operations touch. */
#pragma once

#include "lib/comm/lane/state.h"

/* The bytes that an operation's blocks touch. */
slc_spans slc_op_spans(const slc_comm *comm, const slc_op *op);

/* True if a buffer lies in the attached arena. */
bool slc_in_arena(const slc_comm *comm, const void *buffer, uint64_t bytes);

/* True if the operation's results should be stored past the cache: the ranks of this host touch more bytes for it than
 * a cache keeps, and the results replace nothing that is read. */
bool slc_op_goes_past_cache(const slc_comm *comm, const slc_op *op);

/* True if the last-level cache does not keep this many bytes, so that copies pass it by. */
bool slc_exceeds_cache(uint64_t bytes);
