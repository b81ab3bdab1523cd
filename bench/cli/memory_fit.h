/* Checks that memory of a size that the user has chosen fits into what the host has left. If processes touch more than
 * there is, the system kills one of them, perhaps one that has nothing to do with it. */
#pragma once

#include "lib/base/host/host_memory.h"

#include <sluice/status.h>

typedef struct {
    uint64_t bytes;        /* that a rank takes */
    uint64_t mapped_bytes; /* that it maps of its peers' */
    uint32_t ranks;        /* that take as much on this host, this one included */
} slc_memory_need;

/* Checks that the memory fits; call it before any of it is taken. `what` names the option, as "-e", and begins the
 * error. Errors: ARGUMENT (the host or a control group has less left for all its ranks, or RLIMIT_AS leaves this
 * process fewer addresses). */
sluice_status slc_memory_fit(const slc_host_memory *memory, const slc_memory_need *need, const char *what);
