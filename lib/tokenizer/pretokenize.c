/* See pretokenize.h. GPT-2 (https://github.com/openai/gpt-2, encoder.py) cuts at
 *   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
 * which needs no engine: each alternative is a run of one class of code points, and the classes exclude each other.
 * lib/data/encode_test.c covers this file. */
#include "lib/tokenizer/pretokenize.h"

#include "lib/tokenizer/unicode/chars.h"
#include "lib/tokenizer/unicode/unicode.h"

#include <string.h>

typedef enum { SPACE, LETTER, NUMBER, OTHER } rune_class;

static rune_class class_of(uint32_t rune)
{
    if (slc_rune_is_space(rune)) return SPACE;
    if (slc_rune_is_letter(rune)) return LETTER;
    return slc_rune_is_number(rune) ? NUMBER : OTHER;
}

/* The end of the run of one class that begins at `at`. */
static size_t run_end(const char *text, size_t bytes, size_t at, rune_class class)
{
    for (size_t next = at; at < bytes; at = next)
        if (class_of(slc_rune_next(text, &next)) != class) break;
    return at;
}

/* The length of 's, 't, 're, 've, 'm, 'll or 'd at the beginning of the text; 0: none. */
static size_t contraction(const char *text, size_t bytes)
{
    if (bytes < 2 || text[0] != '\'') return 0;
    if (strchr("stmd", text[1]) && text[1]) return 2;
    if (bytes < 3) return 0;
    bool two = !memcmp(text + 1, "re", 2) || !memcmp(text + 1, "ve", 2) || !memcmp(text + 1, "ll", 2);
    return two ? 3 : 0;
}

/* The end of the byte level word that begins at `at`. */
static size_t byte_level_end(const char *text, size_t bytes, size_t at)
{
    size_t short_end = at + contraction(text + at, bytes - at), next = at;
    if (short_end > at) return short_end;
    uint32_t rune = slc_rune_next(text, &next);
    rune_class class = class_of(rune);
    if (rune == ' ' && next < bytes) {
        size_t after = next;
        rune_class following = class_of(slc_rune_next(text, &after));
        if (following != SPACE) return run_end(text, bytes, after, following);
    }
    size_t end = run_end(text, bytes, next, class);
    if (class != SPACE || end == bytes) return end;
    /* White space before a word leaves its last character, which may belong to that word, unless it is the only one. */
    size_t last = slc_rune_before(text, end);
    return last > at ? last : end;
}

/* Moves *at to the next code point that is no white space. */
static bool skip_spaces(const char *text, size_t bytes, size_t *at)
{
    for (size_t next = *at; *at < bytes; *at = next)
        if (!slc_rune_is_space(slc_rune_next(text, &next))) return true;
    return false;
}

static size_t bert_end(const char *text, size_t bytes, size_t at)
{
    size_t first = at;
    for (size_t next = at; at < bytes; at = next) {
        uint32_t rune = slc_rune_next(text, &next);
        if (slc_rune_is_space(rune)) break;
        if (slc_rune_is_punctuation(rune)) return at > first ? at : next;
    }
    return at;
}

static size_t run_of_words_end(const char *text, size_t bytes, size_t at)
{
    size_t next = at;
    bool word = slc_rune_is_word(slc_rune_next(text, &next));
    for (at = next; at < bytes; at = next) {
        uint32_t rune = slc_rune_next(text, &next);
        if (slc_rune_is_space(rune) || slc_rune_is_word(rune) != word) break;
    }
    return at;
}

static size_t no_space_end(const char *text, size_t bytes, size_t at)
{
    for (size_t next = at; at < bytes; at = next)
        if (slc_rune_is_space(slc_rune_next(text, &next))) break;
    return at;
}

bool slc_words_next(slc_words words, const char *text, size_t bytes, size_t *at, size_t *first)
{
    if (words != SLC_WORDS_WHOLE && words != SLC_WORDS_BYTE_LEVEL && !skip_spaces(text, bytes, at)) return false;
    *first = *at;
    if (*at == bytes) return false;
    switch (words) {
    case SLC_WORDS_WHOLE: *at = bytes; break;
    case SLC_WORDS_BYTE_LEVEL: *at = byte_level_end(text, bytes, *at); break;
    case SLC_WORDS_BERT: *at = bert_end(text, bytes, *at); break;
    case SLC_WORDS_WHITESPACE: *at = run_of_words_end(text, bytes, *at); break;
    case SLC_WORDS_WHITESPACE_SPLIT: *at = no_space_end(text, bytes, *at); break;
    }
    return true;
}
