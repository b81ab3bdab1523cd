/* WordPiece: the longest token that the word begins with, then the longest that continues it, and so on. Private to
 * lib/tokenizer. */
#pragma once

#include "lib/tokenizer/tokenizer.h"
#include "lib/tokenizer/vocabulary.h"

typedef struct {
    slc_vocabulary continuing; /* the tokens that begin with the prefix, without it */
    int32_t unknown;           /* for a word that cannot be cut into tokens, or that is too long */
    size_t most_runes;
    char *prefix; /* "##" */
} slc_wordpiece;

/* Makes the table of continuing tokens for wordpiece->prefix. Error: MEMORY. */
sluice_status slc_wordpiece_init(slc_wordpiece *wordpiece, const slc_vocabulary *vocabulary);
void slc_wordpiece_fini(slc_wordpiece *wordpiece);

/* Appends the tokens of a word. Error: MEMORY. */
sluice_status slc_wordpiece_encode(const slc_wordpiece *wordpiece, const slc_vocabulary *vocabulary, const char *word,
                                   size_t bytes, slc_token_list *list);
