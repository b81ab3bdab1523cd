#include "lib/base/text/shell_word.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Bytes from 0x80 on are parts of letters. */
static bool is_plain(const char *text)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:,=@%+-";
    const char *at = text;
    while (*at && ((unsigned char)*at >= 0x80 || strchr(plain, *at))) at++;
    return *text && !*at;
}

slc_shell_word slc_shell_word_of(const char *text)
{
    slc_shell_word out = {""};
    size_t used = 0;
    if (is_plain(text)) {
        snprintf(out.text, sizeof out.text, "%s", text);
        return out;
    }
    out.text[used++] = '\'';
    for (; *text && used + 6 < sizeof out.text; text++) {
        const char *piece = *text == '\'' ? "'\\''" : (const char[]){*text, '\0'};
        memcpy(out.text + used, piece, strlen(piece));
        used += strlen(piece);
    }
    out.text[used] = '\'';
    return out;
}
