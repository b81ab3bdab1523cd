/* Finds the number of compute threads of a rank whose command line does not give it. One thread calls this. */
#pragma once

#include <sluice/status.h>
#include <stdint.h>

enum { SLC_THREADS_MOST = 1024 };

/* If *threads is 0, it becomes what the environment gives this process: SLURM_CPUS_PER_TASK, else the first number of
 * OMP_NUM_THREADS, else 1. If several ranks share one task of Slurm, as those of `sluice train -n`, each has no more
 * than its share of SLURM_CPUS_ON_NODE. Errors: ARGUMENT (names the variable), those of sluice_world_config_init. */
sluice_status slc_fill_threads(uint64_t *threads);
