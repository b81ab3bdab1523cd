/* Weights as people hand them over: `--weights PATH`. A folder as Hugging Face lays it out (config.json beside
 * model.safetensors or its index), or an llm.c checkpoint of GPT-2. */
#ifndef SLC_WEIGHTS_CHECKPOINT_H
#define SLC_WEIGHTS_CHECKPOINT_H

#include "lib/weights/config.h"
#include "lib/weights/tensors.h"

/* A folder, or a file that is taken for llm.c's. The caller closes. `config` and `out` are set on success alone. Errors
 * as slc_config_read, slc_safetensors_open and slc_llmc_open. */
sluice_status slc_checkpoint_open(const char *path, slc_config *config, slc_tensors **out);

#endif
