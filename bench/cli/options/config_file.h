/* Options in a file: a JSON object whose keys are names of options as they are typed, {"size": "mini", "steps": 200,
 * "data": ["a.txt", "b.txt"], "verbose": true}. One thread. */
#pragma once

#include "bench/cli/options/option.h"

#include <jansson.h>

/* Sets the options that the file has values for and that nothing has set yet. typed[i] is the text that was given for
 * rows[i], or NULL if none was; it then becomes the file's text, which lives as long as the process. The values null
 * and false leave an option as it is. Errors: PATH, IO, MEMORY; FORMAT (no JSON, no object), ARGUMENT (a key that is no
 * option, a value that the option does not take), which name the file and the key. */
sluice_status slc_config_file_read(const char *path, const slc_option *rows, void *options, const char **typed);

/* Sets one of the rows as a value of a file says, in the same way. `where` begins messages: "--config FILE". Errors:
 * MEMORY, ARGUMENT. */
sluice_status slc_config_value_take(const char *where, const slc_option *rows, const slc_option *row, void *options,
                                    const char **typed, const json_t *value);
