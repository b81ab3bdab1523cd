/* Pre-tokenizers: they cut a text into the words that a model takes one at a time. Private to lib/tokenizer. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

typedef enum {
    SLC_WORDS_WHOLE,            /* the text is one word */
    SLC_WORDS_BYTE_LEVEL,       /* GPT-2's regular expression, below */
    SLC_WORDS_BERT,             /* between white space; each punctuation mark is a word */
    SLC_WORDS_WHITESPACE,       /* \w+|[^\w\s]+ */
    SLC_WORDS_WHITESPACE_SPLIT, /* between white space */
} slc_words;

/* The next word of `bytes` bytes of text from *at on, which moves to its end; false: there is none. A word never is
 * empty. Byte level words leave nothing out: each begins where the one before ended. */
bool slc_words_next(slc_words words, const char *text, size_t bytes, size_t *at, size_t *first);
