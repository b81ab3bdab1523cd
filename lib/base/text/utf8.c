/* Bytes below 0x80 are passed eight at a time. */
#include "lib/base/text/utf8.h"

#include <stdint.h>
#include <string.h>

/* The limits of the second byte are those of the Unicode standard's table 3-7. */
size_t slc_utf8_character(const char *text, size_t bytes, bool *whole)
{
    const unsigned char *at = (const unsigned char *)text;
    unsigned char first = at[0], least = 0x80, most = 0xBF;
    size_t length = first < 0x80 ? 1 : first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : first < 0xF5 ? 4 : 0;
    if (first == 0xE0) least = 0xA0;
    if (first == 0xED) most = 0x9F;
    if (first == 0xF0) least = 0x90;
    if (first == 0xF4) most = 0x8F;
    size_t have = 1;
    while (have < length && have < bytes && at[have] >= least && at[have] <= most) {
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
        uint64_t eight;
        if (bytes - at >= sizeof eight) {
            memcpy(&eight, text + at, sizeof eight);
            if (!(eight & UINT64_C(0x8080808080808080))) {
                at += sizeof eight;
                continue;
            }
        }
        bool whole = true;
        const size_t taken = (unsigned char)text[at] < 0x80 ? 1 : slc_utf8_character(text + at, bytes - at, &whole);
        if (!whole) break;
        at += taken;
    }
    return at;
}
