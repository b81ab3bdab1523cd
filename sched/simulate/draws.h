/* Subsets of a job's layers that stand for the steps of a run which drops layers by drawing. They depend on the
 * probabilities, their number and a seed alone, so equal input gives the equal plan. Private to sched and its tools. */
#pragma once

#include "lib/plan/job.h"

/* A forecast is the mean over SLC_DRAWS subsets. A search compares its plans on SLC_DRAWS_FEW others, the same for all,
 * so a plan that is made for these by chance does not look as fast in its forecast. */
enum { SLC_DRAWS = 256, SLC_DRAWS_FEW = 8, SLC_DRAWS_SEED = 2, SLC_DRAWS_FEW_SEED = 1 };

/* Fills left_out [draws * layers] with the layers that each of `draws` > 0 steps leaves out. Layers are drawn apart
 * from each other; of all the draws, the number that keeps a layer is `draws` times its probability keeps[l], rounded
 * up or down, so that few of them give nearly the mean. */
void slc_draws_make(const slc_job *job, const double *keeps, uint32_t draws, uint64_t seed, bool *left_out);
