/* A profile for a person to read. */
#ifndef SLC_BENCH_PROFILE_TABLE_H
#define SLC_BENCH_PROFILE_TABLE_H

#include "lib/plan/profile.h"

#include <stdio.h>

/* A line for each run of layers that are named alike but for a number ("h.0" to "h.11"): parameters, what they keep for
 * their backward, times. Then the step's sums and the link. */
void slc_profile_table(FILE *out, const slc_profile *profile);

#endif
