/* A text of JSON that grows: one element of an array to a line, and numbers as short as they can be and still read back
 * exactly. jansson's own writer offers neither. For lib/plan and the engine's checkpoints. */
#pragma once

#include <sluice/status.h>
#include <stddef.h>

typedef struct {
    char *bytes;
    size_t length, capacity;
    sluice_status status; /* the first failure; nothing is added after it */
} slc_json_text;

void slc_json_text_add(slc_json_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void slc_json_text_put(slc_json_text *text, const char *json);      /* adds `json` unchanged, of any length */
void slc_json_text_string(slc_json_text *text, const char *string); /* adds quotes; must be UTF-8 */
void slc_json_text_words(slc_json_text *text, const char *first, const char *second); /* adds "first second" */
void slc_json_text_real(slc_json_text *text, double real);                            /* must be finite */

/* Hands the text over to the caller, who frees it, or frees it and returns the first failure. Errors: MEMORY,
 * FORMAT. */
sluice_status slc_json_text_finish(slc_json_text *text, char **out);
