/* The scratch into which blocks' messages arrive: `depth` slots of equal length, each with an equal part for every
 * peer, in rank order. Slots are taken in order, and a slot counts as free only when all that were taken before it are.
 */
#pragma once

#include "lib/comm/lane/state.h"

uint64_t slc_scratch_slot_bytes(int size, uint64_t block_bytes); /* bytes of a slot that a block needs */

/* A peer's part of a block's slot. Its length is a multiple of 64 and no less than a part of any block takes. */
char *slc_scratch_part(const slc_comm *comm, const slc_active_op *active, uint64_t block, int peer);
uint64_t slc_scratch_part_bytes(const slc_comm *comm);

bool slc_scratch_left(const slc_comm *comm); /* whether a slot is free */
uint32_t slc_scratch_take(slc_comm *comm);
void slc_scratch_free(slc_comm *comm, uint32_t slot);
