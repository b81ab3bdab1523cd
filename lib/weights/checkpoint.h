/* Weights as people hand them over, `--weights PATH`: a folder in Hugging Face's layout (config.json next to
 * model.safetensors or its index), or an llm.c checkpoint of GPT-2. */
#pragma once

#include "lib/weights/config.h"
#include "lib/weights/tensors.h"

/* Opens a folder, or a file that is then taken for llm.c's. The caller closes *out. `config` and `out` are set on
 * success only. Errors: those of slc_config_read, slc_safetensors_open and slc_llmc_open. */
sluice_status slc_checkpoint_open(const char *path, slc_config *config, slc_tensors **out);
