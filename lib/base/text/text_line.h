/* A text that grows in room of the caller's, and is cut where the room ends. */
#pragma once

#include <stddef.h>

typedef struct {
    char *out;
    size_t bytes; /* the room, at least 1 */
    size_t used;  /* without the 0 that ends the text */
} slc_text_line;

/* Appends as printf would. A 0 follows the text; what has no room before it is left out. */
void slc_text_line_add(slc_text_line *line, const char *format, ...) __attribute__((format(printf, 2, 3)));
