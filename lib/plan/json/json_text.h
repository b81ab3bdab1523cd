/* A text of JSON that grows: one element of an array to a line, and numbers as short as they can be and still read back
 * exactly. jansson's own writer offers neither. For lib/plan and the engine's checkpoints. */
#pragma once

#include <jansson.h>
#include <sluice/status.h>
#include <stdio.h>

/* Begins as {0} and keeps its place until slc_json_text_finish. */
typedef struct {
    FILE *out;
    char *bytes; /* these two are whole after fflush(out) */
    size_t length;
    sluice_status status; /* the first failure; nothing is added after it */
} slc_json_text;

void slc_json_text_add(slc_json_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* slc_json_text_string, _real and _value add `before` unchanged, and then the value. */
void slc_json_text_string(slc_json_text *text, const char *before, const char *string); /* must be UTF-8 */
void slc_json_text_real(slc_json_text *text, const char *before, double real);          /* must be finite */
void slc_json_text_value(slc_json_text *text, const char *before, json_t *value); /* taken over; NULL: a failure */

/* Hands the text over to the caller, who frees it, or frees it and returns the first failure. Errors: MEMORY,
 * FORMAT. */
sluice_status slc_json_text_finish(slc_json_text *text, char **out);
