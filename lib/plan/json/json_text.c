/* A growing text; strings are quoted by jansson. profile_json_test.c covers this file. */
#include "lib/plan/json/json_text.h"

#include "lib/base/status.h"

#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void fail(slc_json_text *text, sluice_status status)
{
    if (!text->status) text->status = status;
}

static void append_bytes(slc_json_text *text, const char *bytes, size_t length)
{
    if (text->status) return;
    if (text->length + length + 1 > text->capacity) {
        size_t capacity = 2 * (text->length + length) + 4096;
        char *grown = realloc(text->bytes, capacity);
        if (!grown) {
            fail(text, slc_error(SLUICE_ERR_MEMORY, "JSON of %zu bytes", capacity));
            return;
        }
        text->bytes = grown;
        text->capacity = capacity;
    }
    memcpy(text->bytes + text->length, bytes, length);
    text->length += length;
    text->bytes[text->length] = '\0';
}

void slc_json_text_add(slc_json_text *text, const char *format, ...)
{
    char piece[256];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(piece, sizeof piece, format, args);
    va_end(args);
    if (length < 0 || (size_t)length >= sizeof piece)
        fail(text, slc_error(SLUICE_ERR_FORMAT, "JSON: a piece of %d bytes", length));
    else
        append_bytes(text, piece, (size_t)length);
}

void slc_json_text_put(slc_json_text *text, const char *json)
{
    append_bytes(text, json, strlen(json));
}

void slc_json_text_string(slc_json_text *text, const char *string)
{
    json_t *value = json_string(string);
    char *quoted = value ? json_dumps(value, JSON_ENCODE_ANY) : NULL;
    if (quoted)
        append_bytes(text, quoted, strlen(quoted));
    else
        fail(text, slc_error(SLUICE_ERR_FORMAT, "JSON: a name is not UTF-8; rename it"));
    free(quoted);
    json_decref(value);
}

void slc_json_text_words(slc_json_text *text, const char *first, const char *second)
{
    size_t room = strlen(first) + strlen(second) + 2;
    char *both = malloc(room);
    if (both) {
        snprintf(both, room, "%s %s", first, second);
        slc_json_text_string(text, both);
    } else {
        fail(text, slc_error(SLUICE_ERR_MEMORY, "JSON of %zu bytes", room));
    }
    free(both);
}

/* The locale's decimal point, which may be several bytes, becomes a full stop. */
static size_t plain_point(char *number)
{
    char *to = number;
    bool inside = false;
    for (const char *from = number; *from; from++) {
        bool foreign = !strchr("0123456789+-e", *from);
        if (!foreign) *to++ = *from;
        if (foreign && !inside) *to++ = '.';
        inside = foreign;
    }
    *to = '\0';
    return (size_t)(to - number);
}

void slc_json_text_real(slc_json_text *text, double real)
{
    char number[64];
    if (!isfinite(real)) {
        fail(text, slc_error(SLUICE_ERR_FORMAT, "JSON: a time or rate is not finite"));
        return;
    }
    int digits = 15;
    do snprintf(number, sizeof number, "%.*g", digits, real);
    while (strtod(number, NULL) != real && ++digits <= 17);
    append_bytes(text, number, plain_point(number));
}

sluice_status slc_json_text_finish(slc_json_text *text, char **out)
{
    sluice_status status = text->status;
    if (status)
        free(text->bytes);
    else
        *out = text->bytes;
    *text = (slc_json_text){0};
    return status;
}
