/* Checks the end of a name. Any thread. */
#pragma once

#include <stdbool.h>
#include <string.h>

/* Returns true if the text ends with `end` and has something before it. */
static inline bool slc_ends_with(const char *text, const char *end)
{
    const size_t length = strlen(text), tail = strlen(end);
    return length > tail && !strcmp(text + length - tail, end);
}
