/* UTF-8 that grows, and its code points. All text inside a tokenizer is valid UTF-8 (slc_chars_append_repaired makes it
 * so), which is why reading a code point needs no check. Private to lib/tokenizer. */
#pragma once

#include <sluice/status.h>
#include <stddef.h>
#include <stdint.h>

/* Begun as {0}; the owner frees `data`. */
typedef struct {
    char *data;
    size_t count, room;
} slc_chars;

/* Makes room for `more` bytes. Error: MEMORY; then nothing has changed, as in all that append. */
sluice_status slc_chars_reserve(slc_chars *chars, size_t more);
sluice_status slc_chars_append(slc_chars *chars, const char *text, size_t bytes);
sluice_status slc_chars_append_rune(slc_chars *chars, uint32_t rune);

/* Appends text that may be anything: each longest beginning of a character, or else each byte, that is no UTF-8 becomes
 * U+FFFD (Unicode 14, section 3.9, "substitution of maximal subparts"), as in Python and Rust. */
sluice_status slc_chars_append_repaired(slc_chars *chars, const char *text, size_t bytes);

/* The code point at `*at`, which moves to the next one. */
static inline uint32_t slc_rune_next(const char *text, size_t *at)
{
    const unsigned char *byte = (const unsigned char *)text + *at;
    if (byte[0] < 0x80) return *at += 1, byte[0];
    if (byte[0] < 0xE0) return *at += 2, (byte[0] & 0x1Fu) << 6 | (byte[1] & 0x3Fu);
    if (byte[0] < 0xF0) return *at += 3, (byte[0] & 0x0Fu) << 12 | (byte[1] & 0x3Fu) << 6 | (byte[2] & 0x3Fu);
    *at += 4;
    return (byte[0] & 0x07u) << 18 | (byte[1] & 0x3Fu) << 12 | (byte[2] & 0x3Fu) << 6 | (byte[3] & 0x3Fu);
}

/* The place of the code point that ends at `at`, which is not 0. */
static inline size_t slc_rune_before(const char *text, size_t at)
{
    do at--;
    while (((unsigned char)text[at] & 0xC0) == 0x80);
    return at;
}
