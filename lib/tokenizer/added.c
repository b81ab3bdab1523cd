/* See added.h. tokenizer_test.c covers this file. */
#include "lib/tokenizer/added.h"

#include "lib/base/bisect.h"
#include "lib/tokenizer/unicode/chars.h"
#include "lib/tokenizer/unicode/unicode.h"

#include <stdlib.h>
#include <string.h>

static int by_bytes(const void *left, const void *right)
{
    const slc_added_pattern *a = left, *b = right;
    int order = memcmp(a->text, b->text, a->bytes < b->bytes ? a->bytes : b->bytes);
    if (order) return order;
    if (a->bytes != b->bytes) return a->bytes < b->bytes ? -1 : 1;
    return a->token < b->token ? -1 : a->token > b->token; /* the tokens are in an array, in the order of the file */
}

void slc_added_finder_init(slc_added_finder *finder, slc_added_pattern *patterns, size_t count)
{
    *finder = (slc_added_finder){.patterns = patterns, .count = count};
    if (count) qsort(patterns, count, sizeof *patterns, by_bytes);
    for (size_t byte = 0, i = 0; byte < 256; byte++) {
        finder->from[byte] = (uint32_t)i;
        while (i < count && (unsigned char)patterns[i].text[0] == byte) i++;
        finder->from[byte + 1] = (uint32_t)i;
    }
}

/* Returns the first of the patterns [first, end) whose byte at `place` is at least `byte`; `end`: none. All of them
 * agree in the bytes before `place`, and a pattern that ends there comes first. */
static size_t first_at_least(const slc_added_pattern *patterns, size_t first, size_t end, size_t place, unsigned byte)
{
    SLC_BISECT(size_t, at, first, end, patterns[at].bytes <= place || (unsigned char)patterns[at].text[place] < byte)
    return at;
}

/* The longest pattern at the beginning of the text; NULL: none. */
static const slc_added_pattern *longest(const slc_added_finder *finder, const char *text, size_t bytes)
{
    unsigned byte = (unsigned char)text[0];
    size_t first = finder->from[byte], end = finder->from[byte + 1];
    const slc_added_pattern *best = NULL;
    for (size_t place = 1; first < end; place++) {
        if (finder->patterns[first].bytes == place) best = &finder->patterns[first];
        if (place == bytes) break;
        byte = (unsigned char)text[place];
        first = first_at_least(finder->patterns, first, end, place, byte);
        end = first_at_least(finder->patterns, first, end, place, byte + 1);
    }
    return best;
}

static bool stands_alone(const char *text, size_t bytes, size_t first, size_t end)
{
    size_t before = first ? slc_rune_before(text, first) : 0, after = end;
    if (first && slc_rune_is_word(slc_rune_next(text, &before))) return false;
    return end == bytes || !slc_rune_is_word(slc_rune_next(text, &after));
}

static size_t spaces_before(const char *text, size_t first, size_t least)
{
    while (first > least) {
        size_t before = slc_rune_before(text, first), at = before;
        if (!slc_rune_is_space(slc_rune_next(text, &at))) break;
        first = before;
    }
    return first;
}

static size_t spaces_after(const char *text, size_t bytes, size_t end)
{
    for (size_t at = end; at < bytes; end = at)
        if (!slc_rune_is_space(slc_rune_next(text, &at))) break;
    return end;
}

/* Looks for the next token from search->at on. */
static bool find_token(const slc_added_finder *finder, const char *text, size_t bytes, slc_added_search *search)
{
    while (search->at < bytes) {
        const slc_added_pattern *pattern = longest(finder, text + search->at, bytes - search->at);
        size_t first = search->at, end = first + (pattern ? pattern->bytes : 1);
        search->at = end;
        if (!pattern || (pattern->token->single_word && !stands_alone(text, bytes, first, end))) continue;
        /* White space that the token before took by rstrip is not taken again. But the search goes on where the text of
         * that token ended, so this token may lie in the white space. */
        if (pattern->token->lstrip) first = spaces_before(text, first, search->told < first ? search->told : first);
        if (pattern->token->rstrip) end = spaces_after(text, bytes, end);
        search->found = (slc_added_part){first, end, pattern->token};
        return true;
    }
    return false;
}

bool slc_added_next(const slc_added_finder *finder, const char *text, size_t bytes, slc_added_search *search,
                    slc_added_part *part)
{
    if (!search->found.token && (!finder->count || !find_token(finder, text, bytes, search))) {
        *part = (slc_added_part){search->told, bytes, NULL};
        search->told = search->at = bytes;
        return part->first < bytes;
    }
    if (search->told < search->found.first) {
        *part = (slc_added_part){search->told, search->found.first, NULL};
        search->told = search->found.first;
        return true;
    }
    *part = search->found;
    search->told = part->end;
    search->found.token = NULL;
    return true;
}
