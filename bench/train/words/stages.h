/* The stages of a pipeline at a run's end: a table that shows which stage stands idle, and a line that says why. */
#pragma once

#include "bench/train/stages.h"

#include <stdio.h>

/* `step_s` is that of the run's result. Prints nothing where no step counts. */
void slc_training_print_stages(FILE *out, const slc_training_pipeline *pipeline, double step_s);
