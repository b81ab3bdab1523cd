/* See wordpiece.h. tokenizer_test.c covers this file. */
#include "lib/tokenizer/wordpiece.h"

#include "lib/tokenizer/unicode/chars.h"

#include <stdlib.h>
#include <string.h>

sluice_status slc_wordpiece_init(slc_wordpiece *wordpiece, const slc_vocabulary *vocabulary)
{
    size_t skip = strlen(wordpiece->prefix), count = 0, bytes = 0;
    for (size_t i = 0; i < vocabulary->count; i++) {
        if (strncmp(vocabulary->entries[i].text, wordpiece->prefix, skip) != 0) continue;
        count++;
        bytes += vocabulary->entries[i].bytes - skip + 1;
    }
    sluice_status status = slc_vocabulary_init(&wordpiece->continuing, count, bytes);
    for (size_t i = 0; i < vocabulary->count && !status; i++) {
        const slc_token_entry *entry = &vocabulary->entries[i];
        if (strncmp(entry->text, wordpiece->prefix, skip) != 0) continue;
        status = slc_vocabulary_add(&wordpiece->continuing, entry->text + skip, entry->bytes - skip, entry->number);
    }
    return status;
}

void slc_wordpiece_fini(slc_wordpiece *wordpiece)
{
    slc_vocabulary_fini(&wordpiece->continuing);
    free(wordpiece->prefix);
    wordpiece->prefix = NULL;
}

/* Returns true if the word has more code points than `most`. */
static bool is_too_long(const char *word, size_t bytes, size_t most)
{
    size_t runes = 0;
    for (size_t at = 0; at < bytes && runes <= most; runes++) slc_rune_next(word, &at);
    return runes > most;
}

/* The longest token at the beginning of the text; -1: none. */
static int32_t longest(const slc_vocabulary *vocabulary, const char *text, size_t bytes, size_t *length)
{
    size_t end = bytes;
    if (end > vocabulary->longest) /* the last place in a token's reach where a character begins */
        for (end = vocabulary->longest; end && ((unsigned char)text[end] & 0xC0) == 0x80;) end--;
    for (; end; end = slc_rune_before(text, end)) {
        int32_t token = slc_vocabulary_find(vocabulary, text, end);
        *length = end;
        if (token >= 0) return token;
    }
    return -1;
}

sluice_status slc_wordpiece_encode(const slc_wordpiece *wordpiece, const slc_vocabulary *vocabulary, const char *word,
                                   size_t bytes, slc_token_list *list)
{
    size_t before = list->count, length = 0;
    sluice_status status = SLUICE_OK;
    int32_t token = is_too_long(word, bytes, wordpiece->most_runes) ? -1 : longest(vocabulary, word, bytes, &length);
    for (size_t at = 0; token >= 0;) {
        status = slc_token_list_append(list, &token, 1);
        at += length;
        if (status || at == bytes) return status;
        token = longest(&wordpiece->continuing, word + at, bytes - at, &length);
    }
    list->count = before;
    return slc_token_list_append(list, &wordpiece->unknown, 1);
}
