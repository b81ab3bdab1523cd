/* Reading the sections of a tokenizer.json. Every function takes the file's path and a section, and fills its part of
 * the tokenizer, which slc_tokenizer_close frees if it fails. Errors: FORMAT (says which key), UNSUPPORTED (by name),
 * MEMORY. Private to lib/tokenizer. */
#pragma once

#include "lib/tokenizer/tokenizer_parts.h"

#include <jansson.h>

sluice_status slc_read_token_model(const char *path, const json_t *model, slc_tokenizer *out);
sluice_status slc_read_normalizer(const char *path, const json_t *normalizer, slc_tokenizer *out);
/* Reads the pre-tokenizer. Called after the model was read, because the kind of the model decides which words it can
 * take. */
sluice_status slc_read_pre_tokenizer(const char *path, const json_t *pre_tokenizer, slc_tokenizer *out);
sluice_status slc_read_post_processor(const char *path, const json_t *post_processor, slc_tokenizer *out);
sluice_status slc_read_decoder(const char *path, const json_t *decoder, slc_tokenizer *out);
/* Reads the added tokens. Called after the model and the normaliser were read. */
sluice_status slc_read_added_tokens(const char *path, const json_t *added, slc_tokenizer *out);

/* ---- What they share ---- */

/* The value of "type"; "": there is none. */
const char *slc_read_type(const json_t *section);
/* FORMAT, "PATH: SECTION.KEY: is no WANTED". */
sluice_status slc_read_fault(const char *path, const char *section, const char *key, const char *wanted);
/* UNSUPPORTED, "PATH: SECTION "TYPE" is not supported; CAN are". */
sluice_status slc_read_unsupported(const char *path, const char *section, const char *type, const char *can);
/* A key that is absent or null leaves *out as it is. */
sluice_status slc_read_flag(const char *path, const char *section, const json_t *from, const char *key, bool *out);
sluice_status slc_read_text(const char *path, const char *section, const json_t *from, const char *key,
                            const char **out);
