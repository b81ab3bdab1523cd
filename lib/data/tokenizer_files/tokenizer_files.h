/* The files that make a folder's tokenizer: tokenizer.json, which Sluice follows, and next to it what other programs
 * read too: tokenizer_config.json, special_tokens_map.json and older forms of it (vocab.*, merges.txt). Any thread. */
#pragma once

#include "lib/tokenizer/tokenizer.h"

/* Copies the tokenizer's files from the folder of `path` to the folder `to`, where each takes its place when it is
 * whole; a file that is there already is replaced. If the source has no tokenizer_config.json, one is written, so that
 * transformers takes tokenizer.json as it is, and not what it thinks that such a model has; that file names the special
 * tokens that slc_special_tokens_find finds among the added tokens. If both are one folder, nothing is copied. Errors:
 * PATH, IO, MEMORY; those of slc_tokenizer_open and slc_special_tokens_find. */
sluice_status slc_tokenizer_files_save(const char *path, const char *to);

/* Looks whether the tokenizer_config.json next to `path` says of the tokenizer what its tokenizer.json does not:
 * another program might then make other tokens of a text. *line says so in one line, malloc'ed; NULL: they agree, or
 * there is no such file. Errors: PATH, IO, FORMAT, MEMORY. */
sluice_status slc_tokenizer_files_compare(const slc_tokenizer *tokenizer, const char *path, char **line);
