/* The shape of a model whose weights need not be there. */
#pragma once

#include <sluice/model.h>

/* Does as sluice_model_config_read, and also takes a folder that has a config.json and no weights, or the path of such
 * a file (its name ends with .json). Errors: those of sluice_model_config_read. */
sluice_status slc_model_shape_read(const char *path, sluice_model_config *out);
