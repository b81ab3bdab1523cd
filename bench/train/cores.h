/* Compares the cores that the ranks of a job may use with the threads that compute there. A core is one that the system
 * schedules on: if two of them share a physical core, each counts. */
#pragma once

#include <sluice/status.h>
#include <sluice/world.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { SLC_CORE_WORDS = 64 }; /* room for 4096 cores of a host */

/* The cores of one rank. */
typedef struct {
    uint64_t host;                    /* a hash; ranks of one host have the same */
    uint64_t allowed[SLC_CORE_WORDS]; /* a bit for each core: its affinity */
} slc_rank_cores;

/* All ranks together. */
typedef struct {
    uint64_t ranks, threads; /* threads of a rank */
    uint64_t cores;          /* different ones, on all hosts */
    uint64_t idle;           /* those that no thread is left for */
    uint64_t surplus;        /* threads that share a core with another one */
    uint64_t even;           /* threads a rank that take every core and none twice, as far as that can be; at least 1 */
} slc_cores_use;

/* Counts how `ranks` ranks, with `threads` compute threads each, use their cores. Sorts `of` by host. */
void slc_cores_count(slc_rank_cores *of, uint64_t ranks, uint64_t threads, slc_cores_use *out);

/* Collective: looks at this rank's affinity and counts all ranks'. Errors: MEMORY, those of a gather. */
sluice_status slc_cores_look(sluice_world *world, uint64_t threads, slc_cores_use *out);

/* Looks at the cores of a process that is alone, as slc_cores_look does at those of ranks. */
void slc_cores_look_alone(uint64_t threads, slc_cores_use *out);

/* A rank's share of the idle cores, rounded up: ranks of a host may meet on one. */
uint64_t slc_cores_idle_each(const slc_cores_use *use);

/* Writes what is left idle or taken twice, and the --threads that would mend it; "" if there is nothing to say. */
void slc_cores_words(const slc_cores_use *use, char *out, size_t size);
