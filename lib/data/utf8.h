/* Is a text UTF-8? */
#pragma once

#include <stddef.h>

/* The place of the first byte that is no UTF-8 (RFC 3629: no surrogates, no overlong forms, at most U+10FFFF); `bytes`
 * if there is none. A character that the end cuts off is wrong at its first byte. */
size_t slc_utf8_wrong(const char *text, size_t bytes);
