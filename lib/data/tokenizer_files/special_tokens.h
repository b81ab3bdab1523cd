/* The special tokens of a tokenizer, as the files next to its tokenizer.json name them (tokenizer_config.json,
 * special_tokens_map.json). Any thread. */
#pragma once

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
