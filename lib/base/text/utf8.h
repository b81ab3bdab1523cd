/* UTF-8 as RFC 3629 has it: no surrogates, no overlong forms, at most U+10FFFF. Any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Returns the length of the character at `text`, of which `bytes` >= 1 can be read. If no whole character is there,
 * *whole is false, and the result is the length of the longest beginning of one, at least 1. */
size_t slc_utf8_character(const char *text, size_t bytes, bool *whole);

/* The number of bytes at the beginning of `text` that are valid UTF-8. A character that the end cuts off is not valid
 * from its first byte on. */
size_t slc_utf8_valid(const char *text, size_t bytes);
