/* Sums up the steps of a run. */
#ifndef SLC_BENCH_TRAINING_SUMMARY_H
#define SLC_BENCH_TRAINING_SUMMARY_H

#include "bench/train/result.h"

/* Fills medians, rates and phases from the steps. Errors: MEMORY. */
sluice_status slc_training_summarise(slc_training_result *result);

#endif
