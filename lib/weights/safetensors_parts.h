/* What the readers and the writer of safetensors share. Private to lib/weights. */
#ifndef SLC_WEIGHTS_SAFETENSORS_PARTS_H
#define SLC_WEIGHTS_SAFETENSORS_PARTS_H

#include "lib/weights/safetensors.h"

#include <jansson.h>

/* 1 to 1023 bytes without control characters. */
bool slc_tensor_name_valid(const char *name, size_t length);

/* The tensors of one file into the set. */
sluice_status slc_safetensors_add(slc_tensors *tensors, const char *path);

/* The files that an index names, and what it says of each tensor. `path` of the index: its folder is theirs. */
sluice_status slc_safetensors_add_index(slc_tensors *tensors, const char *path, const char *text, size_t length);

#endif
