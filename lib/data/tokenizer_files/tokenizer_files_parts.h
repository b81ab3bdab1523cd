/* Finding and reading the files next to a tokenizer. Private to lib/data. */
#pragma once

#include <jansson.h>
#include <sluice/status.h>

/* PATH/NAME, or the file NAME next to PATH if that is a file; malloc'ed. NULL: no memory. */
char *slc_tokenizer_file_path(const char *path, const char *name);

/* *root is the JSON in the file NAME of the tokenizer at `path`, which the caller decrefs, or NULL if there is no
 * such file. Integers are read as reals, for some are more than an integer holds (model_max_length is 10^30 if there
 * is no limit). Errors: PATH, IO, FORMAT, MEMORY. */
sluice_status slc_tokenizer_file_read(const char *path, const char *name, json_t **root);
