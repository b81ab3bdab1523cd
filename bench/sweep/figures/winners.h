/* Which cells of a sweep are the fastest, as far as repetitions can tell: a winner is one whose interval, from its
 * fastest to its slowest run, does not touch that of any other plan. */
#ifndef SLC_BENCH_SWEEP_WINNERS_H
#define SLC_BENCH_SWEEP_WINNERS_H

#include "bench/sweep/results.h"

#include <stdio.h>

/* Prints a line for each throttle and budget: the winner, or that there is none and who is as fast. */
void slc_bench_winners_show(FILE *out, const json_t *runs);

/* Prints auto beside the fastest uniform strategy of each budget; nothing where auto did not run. */
void slc_bench_auto_show(FILE *out, const json_t *runs);

#endif
