/* Text to tokens and back, as the weights of a model want it: by the tokenizer.json that lies with them, as bytes if
 * the vocabulary has the 256 of them, or not at all. Tokens that are added one by one give their text in whole UTF-8
 * characters. One thread. */
#pragma once

#include "lib/tokenizer/tokenizer.h"

#include <sluice/model.h>

typedef struct slc_token_text slc_token_text;

/* A part of a text; it may contain 0. Valid until the next call. */
typedef struct {
    const char *at;
    size_t bytes;
} slc_text_piece;

/* Opens the text of a model. `weights` is what --weights names, or NULL if the model has first values; `tokenizer` is
 * what --tokenizer names, or NULL for the tokenizer that lies with the weights. Strings stay the caller's, who also
 * closes *out. Errors: those of slc_tokenizer_open; ARGUMENT (a tokenizer of more tokens than the model has); FORMAT,
 * PATH, IO (the files that name the tokens); MEMORY. */
sluice_status slc_token_text_open(const char *weights, const char *tokenizer, const sluice_model_config *model,
                                  slc_token_text **out);
void slc_token_text_close(slc_token_text *text); /* NULL is allowed */

/* Returns a line that the user should see, on files that contradict each other; NULL: none. Valid as long as the text.
 */
const char *slc_token_text_note(const slc_token_text *text);
/* Names the source of tokens: "tokenizer.json", "bytes", "none". A constant. */
const char *slc_token_text_kind(const slc_token_text *text);
/* Returns true if this token ends a text. Those of generation_config.json's eos_token_id do, else config.json's, else
 * the end token of the tokenizer. */
bool slc_token_text_ends(const slc_token_text *text, int32_t token);

/* Appends the tokens of a text to the list. Errors: ARGUMENT (there is neither a tokenizer nor a byte vocabulary; the
 * line says what to do), MEMORY. */
sluice_status slc_token_text_encode(const slc_token_text *text, const char *string, size_t bytes, slc_token_list *list);

/* Adds a token. *piece: what it makes known of the text, nothing if a character is not whole yet. Bytes that are no
 * UTF-8 become U+FFFD. Without a tokenizer or bytes the text of a token is its number and a space; a token that the
 * model has and its tokenizer has not is no text. Errors: ARGUMENT (no such token), MEMORY. */
sluice_status slc_token_text_add(slc_token_text *text, int32_t token, slc_text_piece *piece);
/* Returns what was held back, when no token follows. */
slc_text_piece slc_token_text_finish(slc_token_text *text);
/* Returns the text of all that was added. */
slc_text_piece slc_token_text_all(const slc_token_text *text);
