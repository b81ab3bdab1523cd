/* A byte-level BPE that is made on the spot: token b is byte b, token 256 + i is merge i. Only for tests and fuzzers.
 */
#pragma once

#include "lib/tokenizer/bpe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* `merges` are "LEFT RIGHT", without characters that JSON escapes; `pre_tokenizer` are further keys of it
 * (", \"use_regex\": false") and `sections` further sections (", \"added_tokens\": [...]"). The caller frees it. */
static inline char *made_bpe(const char *const *merges, size_t count, const char *pre_tokenizer, const char *sections)
{
    slc_chars text = {0};
    char line[4096], rune[8];
    snprintf(line, sizeof line,
             "{\"pre_tokenizer\": {\"type\": \"ByteLevel\"%s}, \"decoder\": {\"type\": \"ByteLevel\"}%s, "
             "\"model\": {\"type\": \"BPE\", \"vocab\": {",
             pre_tokenizer, sections);
    sluice_status status = slc_chars_append(&text, line, strlen(line));
    for (unsigned byte = 0; byte < 256 && !status; byte++) {
        slc_chars one = {.data = rune, .room = sizeof rune};
        if (byte == '"' || byte == '\\') slc_chars_append(&one, "\\", 1);
        slc_chars_append_rune(&one, slc_bpe_rune_of((unsigned char)byte));
        snprintf(line, sizeof line, "%s\"%.*s\": %u", byte ? ", " : "", (int)one.count, rune, byte);
        status = slc_chars_append(&text, line, strlen(line));
    }
    for (size_t i = 0; i < count && !status; i++) {
        const char *space = strchr(merges[i], ' ');
        snprintf(line, sizeof line, ", \"%.*s%s\": %zu", (int)(space - merges[i]), merges[i], space + 1, 256 + i);
        status = slc_chars_append(&text, line, strlen(line));
    }
    if (!status) status = slc_chars_append(&text, "}, \"merges\": [", 14);
    for (size_t i = 0; i < count && !status; i++) {
        snprintf(line, sizeof line, "%s\"%s\"", i ? ", " : "", merges[i]);
        status = slc_chars_append(&text, line, strlen(line));
    }
    if (!status) status = slc_chars_append(&text, "]}}", 4);
    if (status) abort();
    return text.data;
}
