/* Options in a file: a JSON object whose keys are names of options as they are typed, {"size": "mini", "steps": 200,
 * "data": ["a.txt", "b.txt"], "verbose": true}. One thread. */
#pragma once

#include "bench/cli/options/option.h"

/* Sets what the file says and nothing has set yet. typed[i]: the text that was given for rows[i], NULL: none; it gets
 * the file's, which lives as long as the process. null and false leave an option as it is. Errors: PATH, IO, MEMORY;
 * FORMAT (no JSON, no object), ARGUMENT (a key that is no option, a value that the option does not take): they name
 * file and key. */
sluice_status slc_config_file_read(const char *path, const slc_option *rows, void *options, const char **typed);
