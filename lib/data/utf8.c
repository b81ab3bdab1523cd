/* Bytes below 0x80 are passed eight at a time. text_form_test.c covers this file. */
#include "lib/data/utf8.h"

#include <stdint.h>
#include <string.h>

/* Bytes of the character that begins here; 0: none does. The table of RFC 3629, section 4. */
static size_t character(const unsigned char *at, size_t left)
{
    const unsigned char lead = *at;
    const size_t bytes = lead < 0x80 ? 1 : lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf5 ? 4 : 0;
    if (bytes > left) return 0;
    const unsigned char least = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
    const unsigned char most = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
    if (bytes > 1 && (at[1] < least || at[1] > most)) return 0;
    for (size_t i = 2; i < bytes; i++)
        if ((at[i] & 0xc0) != 0x80) return 0;
    return bytes;
}

size_t slc_utf8_wrong(const char *text, size_t bytes)
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
        const size_t taken = character((const unsigned char *)text + at, bytes - at);
        if (!taken) return at;
        at += taken;
    }
    return bytes;
}
