/* The stream for text that people read. */
#pragma once

#include "bench/train/options/training_options.h"

#include <stdio.h>

/* Returns standard error if standard output is a file of results, else standard output. */
FILE *slc_training_people(const slc_training_options *options);
