/* See chars.h. lib/tokenizer/golden_tokens_test.c covers this file. */
#include "lib/tokenizer/unicode/chars.h"

#include "lib/base/status.h"
#include "lib/base/text/utf8.h"

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

sluice_status slc_chars_append_repaired(slc_chars *chars, const char *text, size_t bytes)
{
    size_t before = chars->count;
    sluice_status status = slc_chars_reserve(chars, bytes);
    while (!status && bytes) {
        size_t valid = slc_utf8_valid(text, bytes), damaged = 0;
        bool whole;
        status = slc_chars_append(chars, text, valid);
        if (!status && valid < bytes) {
            damaged = slc_utf8_character(text + valid, bytes - valid, &whole);
            status = slc_chars_append_rune(chars, 0xFFFD);
        }
        text += valid + damaged;
        bytes -= valid + damaged;
    }
    if (status) chars->count = before;
    return status;
}
