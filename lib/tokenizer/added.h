/* Tokens that are found in the text before anything else is done to it: added_tokens of tokenizer.json. Private to
 * lib/tokenizer. */
#pragma once

#include <sluice/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    char *text; /* ended by 0 */
    size_t bytes;
    int32_t number;
    bool special;        /* no part of running text: skip_special_tokens leaves it out */
    bool single_word;    /* only if no word character is next to it */
    bool lstrip, rstrip; /* the white space before it, after it, belongs to it */
    bool normalized;     /* it is looked for in the normalised text, as its own normalised text */
} slc_added_token;

typedef struct {
    const char *text;
    size_t bytes;
    const slc_added_token *token;
} slc_added_pattern;

/* Patterns in the order of their bytes, so that those with the same beginning are next to each other. */
typedef struct {
    slc_added_pattern *patterns;
    size_t count;
    uint32_t from[257]; /* those that begin with byte b are from[b] to from[b + 1] */
} slc_added_finder;

/* Makes a finder of `count` patterns, none of which is empty; it owns the array from then on, sorted, and the earlier
 * of two equal patterns counts. */
void slc_added_finder_init(slc_added_finder *finder, slc_added_pattern *patterns, size_t count);

/* A part of a text: a token, or text between tokens (token NULL). */
typedef struct {
    size_t first, end;
    const slc_added_token *token;
} slc_added_part;

/* The search in one text; begins as {0}. */
typedef struct {
    size_t at;            /* the text before it was looked at */
    size_t told;          /* the text before it was given out */
    slc_added_part found; /* a token that waits until the text before it was given out */
} slc_added_search;

/* The next part of `bytes` bytes of text; false: there is none. Tokens are found from left to right, the longest of
 * those that begin at one place. */
bool slc_added_next(const slc_added_finder *finder, const char *text, size_t bytes, slc_added_search *search,
                    slc_added_part *part);
