/* A world for planning: this process is its rank 0, and the other ranks are imagined. It answers what the real world
 * would about sizes, and small collectives end at once, as if every rank had called them with the same data. It has no
 * communication thread and moves no block: nothing may be attached or submitted. */
#pragma once

#include <sluice/world.h>

/* Makes a world of `size` ranks, of which `ranks_a_host` share each host; with less than `size`, some pair of ranks
 * needs messages, and blocks need scratch memory. The caller calls sluice_world_destroy. Errors: ARGUMENT (a size
 * beyond SLUICE_RANKS_MOST, no rank on a host, or a setting), MEMORY, SYSTEM. */
sluice_status slc_world_imagine(int size, int ranks_a_host, sluice_world **out);
