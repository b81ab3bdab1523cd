/* Shared by the readers and the writer of safetensors. Private to lib/weights. */
#pragma once

#include "lib/weights/safetensors/safetensors.h"

#include <jansson.h>

/* A name must have 1 to 1023 bytes and no control characters. */
bool slc_tensor_name_valid(const char *name, size_t length);

/* Adds the tensors of one file to the set. */
sluice_status slc_safetensors_add(slc_tensors *tensors, const char *path);

/* Adds the files that an index names, and checks what the index says of each tensor. `path` is the index's; the files
 * are in its folder. */
sluice_status slc_safetensors_add_index(slc_tensors *tensors, const char *path, const char *text, size_t length);
