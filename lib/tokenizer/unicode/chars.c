/* See chars.h. lib/tokenizer/golden_tokens_test.c covers this file. */
#include "lib/tokenizer/unicode/chars.h"

#include "lib/base/status.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

sluice_status slc_chars_reserve(slc_chars *chars, size_t more)
{
    if (more <= chars->room - chars->count) return SLUICE_OK;
    size_t room = chars->room + chars->room / 2 + 64;
    if (room - chars->count < more) room = chars->count + more;
    char *data = room >= more ? realloc(chars->data, room) : NULL;
    if (!data) return slc_error(SLUICE_ERR_MEMORY, "text of %zu bytes for a tokenizer", room);
    chars->data = data;
    chars->room = room;
    return SLUICE_OK;
}

sluice_status slc_chars_append(slc_chars *chars, const char *text, size_t bytes)
{
    sluice_status status = slc_chars_reserve(chars, bytes);
    if (status || !bytes) return status;
    memcpy(chars->data + chars->count, text, bytes);
    chars->count += bytes;
    return SLUICE_OK;
}

sluice_status slc_chars_append_rune(slc_chars *chars, uint32_t rune)
{
    char out[4] = {(char)rune};
    size_t bytes = 1;
    if (rune >= 0x10000) {
        out[0] = (char)(0xF0 | rune >> 18), out[1] = (char)(0x80 | (rune >> 12 & 0x3F));
        out[2] = (char)(0x80 | (rune >> 6 & 0x3F)), out[3] = (char)(0x80 | (rune & 0x3F));
        bytes = 4;
    } else if (rune >= 0x800) {
        out[0] = (char)(0xE0 | rune >> 12), out[1] = (char)(0x80 | (rune >> 6 & 0x3F));
        out[2] = (char)(0x80 | (rune & 0x3F));
        bytes = 3;
    } else if (rune >= 0x80) {
        out[0] = (char)(0xC0 | rune >> 6), out[1] = (char)(0x80 | (rune & 0x3F));
        bytes = 2;
    }
    return slc_chars_append(chars, out, bytes);
}

/* Returns the number of bytes at `text` that are a character, or the longest beginning of one (*whole is false then; at
 * least 1). The limits of the second byte are those of the Unicode standard's table 3-7. */
static size_t character(const unsigned char *text, size_t bytes, bool *whole)
{
    unsigned char first = text[0], least = 0x80, most = 0xBF;
    size_t length = first < 0x80 ? 1 : first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : first < 0xF5 ? 4 : 0;
    if (first == 0xE0) least = 0xA0;
    if (first == 0xED) most = 0x9F;
    if (first == 0xF0) least = 0x90;
    if (first == 0xF4) most = 0x8F;
    size_t have = 1;
    while (have < length && have < bytes && text[have] >= least && text[have] <= most) {
        least = 0x80, most = 0xBF;
        have++;
    }
    *whole = have == length;
    return have;
}

size_t slc_utf8_valid(const char *text, size_t bytes)
{
    size_t at = 0;
    while (at < bytes) {
        bool whole = true;
        size_t take =
            (unsigned char)text[at] < 0x80 ? 1 : character((const unsigned char *)text + at, bytes - at, &whole);
        if (!whole) break;
        at += take;
    }
    return at;
}

sluice_status slc_chars_append_repaired(slc_chars *chars, const char *text, size_t bytes)
{
    size_t before = chars->count;
    sluice_status status = slc_chars_reserve(chars, bytes);
    while (!status && bytes) {
        size_t valid = slc_utf8_valid(text, bytes), damaged = 0;
        bool whole;
        status = slc_chars_append(chars, text, valid);
        if (!status && valid < bytes) {
            damaged = character((const unsigned char *)text + valid, bytes - valid, &whole);
            status = slc_chars_append_rune(chars, 0xFFFD);
        }
        text += valid + damaged;
        bytes -= valid + damaged;
    }
    if (status) chars->count = before;
    return status;
}
