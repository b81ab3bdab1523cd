/* Prints a profile for people to read. */
#pragma once

#include "lib/plan/profile.h"

#include <stdio.h>

/* Prints a line for each run of layers whose names differ only in a number ("h.0" to "h.11"): parameters, bytes kept
 * for their backward, times. Then it prints the sums of the step, and the link. */
void slc_profile_table(FILE *out, const slc_profile *profile);
