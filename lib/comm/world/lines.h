/* All groups and channels of a rank, for the communication thread, which carries them out next to the world's own lane,
 * and for whoever asks what the rank is doing. Private to lib/comm. */
#pragma once

#include "lib/comm/world/state.h"

void slc_lines_init(slc_lines *lines);
/* Frees the groups and channels that are left; after the communication thread has ended and the transport is closed. */
void slc_lines_fini(slc_lines *lines);

/* Each frees a group or channel that is in no list, even one that was made only in part; NULL is allowed. */
void slc_lines_free_group(slc_group *group);
void slc_lines_free_channel(slc_channel *channel);

void slc_lines_add_group(slc_lines *lines, slc_group *group);
void slc_lines_add_channel(slc_lines *lines, slc_channel *channel);
/* Each takes a group or channel out of its list and frees it, once everything that was submitted to it is complete.
 * After a failure of the world it stays until slc_lines_fini, because a transport may still hold its messages. */
void slc_lines_end_group(sluice_world *world, slc_group *group);
void slc_lines_end_channel(sluice_world *world, slc_channel *channel);

/* True if this rank has an end of channel `number` open, or is in group `number`. Called by the thread that opens and
 * closes. */
bool slc_lines_has_channel(const slc_lines *lines, uint32_t number);
bool slc_lines_has_group(const slc_lines *lines, uint32_t number);

/* Waits until everything that was submitted is complete or the world has failed, and takes its memory from every group.
 */
void slc_lines_detach(sluice_world *world);

/* ---- On the communication thread ---- */

bool slc_lines_step(slc_lines *lines, uint64_t now_ns); /* true if anything was done */
uint64_t slc_lines_due(slc_lines *lines);               /* when the next held-back completion is due */
void slc_lines_end_waits(slc_lines *lines);             /* after a failure */
uint64_t slc_lines_digest(slc_lines *lines);            /* changes as operations and transfers go on */
uint32_t slc_lines_submitted(slc_lines *lines);         /* changes as the program submits */

/* True if the program waits in a group or channel. *what is then the name of what it waits for, and *peer a rank that
 * has not come to that (-1: not known). */
bool slc_lines_wait(slc_lines *lines, int *peer, const char **what);

/* A rank that is needed for what was submitted and has left since before `limit_ns`; -1: there is none. */
int slc_lines_departed(sluice_world *world, uint64_t limit_ns);
