/* Inputs for readers of long texts: a fuzzer's few bytes become edits of a good text. */
#pragma once

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static inline char *fuzz_copy(const void *data, size_t size, size_t *length)
{
    char *text = malloc(size + 1); /* exactly as long as needed, so that the sanitizer sees reading past its end */
    if (text && size) memcpy(text, data, size);
    *length = size;
    return text;
}

/* Takes white space out of a text that is to be edited: in half of a plan edits would test nothing. Names keep none. */
static inline char *fuzz_without_space(char *text)
{
    char *to = text;
    for (const char *from = text; *from; from++)
        if (*from != '\n' && *from != ' ') *to++ = *from;
    *to = '\0';
    return text;
}

/* Replaces `drop` bytes at `at` by `put` bytes; bytes beyond the end of the text are not dropped. */
static inline char *fuzz_edit(char *text, size_t *length, size_t at, size_t drop, const uint8_t *bytes, size_t put)
{
    at = *length ? at % (*length + 1) : 0;
    if (drop > *length - at) drop = *length - at;
    char *out = malloc(*length - drop + put + 1);
    if (out) {
        memcpy(out, text, at);
        if (put) memcpy(out + at, bytes, put);
        memcpy(out + at + put, text + at + drop, *length - at - drop);
        *length += put - drop;
    }
    free(text);
    return out;
}

/* Replaces one character by one of those that numbers and lists are made of: after most such edits the text is still
 * JSON. */
static inline void fuzz_replace(char *text, size_t length, size_t at, uint8_t which)
{
    static const char symbols[] = "01234567890123456789,-[]";
    if (length) text[at % length] = symbols[which % (sizeof symbols - 1)];
}

/* The first byte says which text, or that the input itself is the text. Then come edits: two bytes for the place, one
 * for how many bytes go, one for how many come, and those bytes. If the third byte is 128 or more, the fourth one
 * chooses a symbol instead. The caller frees the result. */
static inline char *fuzz_splice(const char *const *texts, size_t count, const uint8_t *data, size_t size,
                                size_t *length)
{
    if (!size || data[0] % (count + 1) == count) return fuzz_copy(data + !!size, size - !!size, length);
    const char *base = texts[data[0] % (count + 1)];
    char *text = fuzz_copy(base, strlen(base), length);
    for (size_t i = 1; text && i + 4 <= size;) {
        size_t at = data[i] | (size_t)data[i + 1] << 8, drop = data[i + 2] % 32, put = data[i + 3] % 32;
        uint8_t how = data[i + 2], symbol = data[i + 3];
        i += 4;
        if (how >= 128) {
            fuzz_replace(text, *length, at, symbol);
            continue;
        }
        if (put > size - i) put = size - i;
        text = fuzz_edit(text, length, at, drop, data + i, put);
        i += put;
    }
    return text;
}

/* A fuzzer that calls check(text, length) with edits of the texts `seeds`. */
#define FUZZ_EDITS(seeds, check)                                                                                       \
    int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);                                                      \
    int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)                                                       \
    {                                                                                                                  \
        size_t length;                                                                                                 \
        char *text = fuzz_splice(seeds, sizeof seeds / sizeof *seeds, data, size, &length);                            \
        if (text) check(text, length);                                                                                 \
        free(text);                                                                                                    \
        return 0;                                                                                                      \
    }
