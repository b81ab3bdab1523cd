/* Collectives of some ranks of a world, as the replicas of one stage of a pipeline.
 *
 * A group is a slc_comm of its own, with the functions of comm.h: its ranks are 0 to count - 1, its operations have
 * their own order, counts and gate, and are submitted by its members alone. It uses the world's communication thread
 * and the world's attached memory. Operations of different lanes (the world's, a group's) look only at the bytes of
 * their own lane: a caller lets those that touch the same bytes wait for each other's counts. */
#pragma once

#include "lib/comm/comm.h"

/* Makes the group of the `count` ranks `members` of the world (ascending, with this rank among them). Collective and
 * blocking: every rank of the world calls it with the same number, from 1 to SLC_LANES_MOST - 1 (neighbours.h); groups
 * that share no rank have the same number, and a rank in no group gives count 0 and gets NULL. A number is free again
 * when every rank has destroyed its group. Errors, on every rank: ARGUMENT, MISMATCH (a member names other members),
 * UNSUPPORTED (memory of a GPU), MEMORY, and the world's failure. */
sluice_status slc_comm_group_create(slc_comm *world, uint32_t number, const int *members, int count, slc_comm **out);

/* Lets the group work in the world's attached segment, with `scratch` inside it, of as many bytes as
 * slc_comm_scratch_bytes says for the group. Local; to be called again after each slc_comm_attach of the world, which
 * takes the memory away from all groups. Errors: ORDER (the world has nothing attached), ARGUMENT, MEMORY. */
sluice_status slc_comm_group_attach(slc_comm *group, void *scratch, uint64_t scratch_bytes);

/* Waits until its operations are complete, or the world has failed, and frees the group; NULL is allowed. To be called
 * before the world is destroyed. */
void slc_comm_group_destroy(slc_comm *group);
