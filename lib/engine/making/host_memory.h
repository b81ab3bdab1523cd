/* Holds a plan against the memory that its host has. Private to lib/engine. */
#pragma once

#include "lib/base/host/host_memory.h"

#include <sluice/runtime.h>

typedef struct {
    slc_host_memory memory; /* before any rank of this job has taken memory for the plan */
    uint32_t ranks;         /* of this job on this host */
    bool first;             /* this rank has the lowest number of them */
} slc_host_look;

/* Looks at the host, and counts its ranks. Collective. Errors: MEMORY; those of a small collective. */
sluice_status slc_engine_look_at_host(sluice_runtime *rt, slc_host_look *look);
/* Warns, once on each host, of a plan whose ranks together need more than is available. */
void slc_engine_warn_of_memory(const sluice_runtime *rt, const slc_host_look *look);
/* Adds to an error of the system, which had no memory for the arena, what the host has and what to do; other errors
 * stay as they are. Returns `status`. */
sluice_status slc_engine_explain_memory(const sluice_runtime *rt, const slc_host_look *look, sluice_status status);
