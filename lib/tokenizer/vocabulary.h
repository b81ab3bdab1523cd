/* The tokens of a model: number by text and text by number. Private to lib/tokenizer. */
#pragma once

#include <sluice/status.h>
#include <stddef.h>
#include <stdint.h>
#include <uthash.h>

/* Numbers are below this, so that a damaged file asks for no tables of gigabytes. */
#define SLC_TOKEN_LIMIT (1 << 24)

typedef struct {
    const char *text; /* ended by 0, which `bytes` does not count */
    size_t bytes;
    int32_t number;
    UT_hash_handle hh;
} slc_token_entry;

typedef struct {
    slc_token_entry *entries, *by_text;
    size_t count, room;
    char *texts; /* of all entries */
    size_t longest;
} slc_vocabulary;

/* Room for `count` tokens with `bytes` bytes of text, their ending zeros counted. Error: MEMORY. */
sluice_status slc_vocabulary_init(slc_vocabulary *vocabulary, size_t count, size_t bytes);
void slc_vocabulary_fini(slc_vocabulary *vocabulary); /* of zeros, too */
/* Adds a token while there is room for it; the text must be new. Error: MEMORY. */
sluice_status slc_vocabulary_add(slc_vocabulary *vocabulary, const char *text, size_t bytes, int32_t number);
/* The number of a text; -1: no token. */
int32_t slc_vocabulary_find(const slc_vocabulary *vocabulary, const char *text, size_t bytes);
