/* The value of --throttle, read before any world exists: with one rank no transport would ever look at it. */
#ifndef SLC_BENCH_THROTTLE_OPTION_H
#define SLC_BENCH_THROTTLE_OPTION_H

#include <sluice/status.h>

/* BANDWIDTH[,LATENCY] as "1gbit,50us"; "" is none. Errors: ARGUMENT, MEMORY. */
sluice_status slc_throttle_check(const char *text);

#endif
