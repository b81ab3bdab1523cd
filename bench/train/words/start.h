/* The lines that `sluice train` prints before its first step, and the name that it gives a run. */
#pragma once

#include "bench/train/cores.h"
#include "bench/train/data/data.h"
#include "bench/train/run.h"

#include <stdio.h>

/* Prints model, data, ranks, training, budget: a line each, and one on cores that are left idle or taken twice.
 * `result` holds what is known before the first step. */
void slc_training_print_start(FILE *out, const slc_training_options *options, const slc_training_result *result,
                              const slc_training_data *data, const slc_cores_use *cores, const sluice_runtime *rt);

/* "gpt2 nano, batch 4, context 64": the name of a profile. */
void slc_training_name(const slc_training_options *options, char *out, size_t size);

/* {"paths", "kind", ...}: "data" of a run. NULL: no memory. */
json_t *slc_training_data_json(const slc_training_options *options, const slc_training_data *data);
