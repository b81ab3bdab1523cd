/* Tells the processes of one host from those of another. */
#pragma once

#include <stdint.h>

/* Returns a number that is the same for all processes that share a running kernel and a host's name. Containers of one
 * host have memory of their own, and names too, so they differ. Any thread. */
uint64_t slc_host_identify(void);
