/* Prints the lines after the last step: three on what became of the run, where the weights are, and with --verbose the
 * tables. */
#pragma once

#include "bench/train/options/options.h"
#include "bench/train/result.h"

#include <stdio.h>

/* `why_late` names the option or variable that set the time, for a run that stopped because its time was over. */
void slc_training_print_end(FILE *out, const slc_training_options *options, const slc_training_result *result,
                            const char *why_late);
