/* The lines behind the last step: what became of the run in three of them, where the weights are, and with --verbose
 * the tables. */
#pragma once

#include "bench/train/options/options.h"
#include "bench/train/result.h"

#include <stdio.h>

/* `why_late`: the option or variable whose time a run that stopped for it kept. */
void slc_training_print_end(FILE *out, const slc_training_options *options, const slc_training_result *result,
                            const char *why_late);
