/* Checks the value of --throttle before any world exists, because with one rank no transport reads it. Any thread. */
#pragma once

#include <sluice/status.h>

/* `text` is BANDWIDTH[,LATENCY] as "1gbit,50us", or "" for none. Errors: ARGUMENT, MEMORY. */
sluice_status slc_throttle_check(const char *text);
