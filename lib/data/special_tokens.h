/* The files that make a folder's tokenizer: tokenizer.json, and next to it what names its special tokens
 * (tokenizer_config.json, special_tokens_map.json) and older forms of it (vocab.*, merges.txt). Any thread. */
#ifndef SLC_DATA_SPECIAL_TOKENS_H
#define SLC_DATA_SPECIAL_TOKENS_H

#include "lib/tokenizer/tokenizer.h"

/* Numbers of tokens; -1: the tokenizer has none. */
typedef struct {
    int32_t begin, end;    /* bos_token, eos_token */
    int32_t first, last;   /* cls_token, sep_token: around each input of BERT */
    int32_t mask, padding; /* mask_token, pad_token */
} slc_special_tokens;

/* Finds the special tokens of the tokenizer that was opened from `path`, a tokenizer.json or its folder: as
 * tokenizer_config.json says, else special_tokens_map.json, else by the names that GPT-2 and BERT give them. Errors:
 * PATH, IO, FORMAT (a file of these that is damaged, or names a token that the tokenizer lacks), MEMORY. */
sluice_status slc_special_tokens_find(const slc_tokenizer *tokenizer, const char *path, slc_special_tokens *out);

/* Copies the tokenizer's files from the folder of `path` to the folder `to`, where each takes its place when it is
 * whole; a file that is there already is replaced. Where both are one folder nothing is done. Errors: PATH, IO, MEMORY.
 */
sluice_status slc_tokenizer_files_copy(const char *path, const char *to);

#endif
