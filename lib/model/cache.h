/* The cache of keys and values: for each block what lib/kernels/attention keeps of one sequence. It is memory of the
 * host that the model owns and the runtime's budget counts. */
#pragma once

#include "lib/kernels/attention/attention.h"
#include "lib/model/state.h"

/* Both functions do nothing for a model without a cache. slc_model_cache_reserve is called before commit. Errors:
 * MEMORY; as sluice_runtime_reserve. */
sluice_status slc_model_cache_reserve(sluice_model *m);
sluice_status slc_model_cache_create(sluice_model *m);

/* A block's part, with the tokens that the cache holds before the current pass. */
slc_attention_cache slc_model_cache_of(const sluice_model *m, uint32_t block);
