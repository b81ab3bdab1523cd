/* Chooses the times of one rank to stand for those of all ranks, which wait for each other in synchronous steps. */
#pragma once

#include <stddef.h>

/* `all` has for each of `ranks` ranks `count` times that it measured, 0 if it measured none; the first `slots` of them
 * are those of slots. Writes to `out` the times of the rank whose slots take longest together, because the others wait
 * for it. The largest of each time would be too long: chance makes now this rank slower, now that one, and with a few
 * samples such differences add up. Returns how much longer a slot takes on the rank where it takes longest than on the
 * chosen rank, in the mean over slots; 0 without slots. */
double slc_rank_times_take(const double *all, size_t ranks, size_t count, size_t slots, double *out);
