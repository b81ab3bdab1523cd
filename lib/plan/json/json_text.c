/* A growing text; strings are quoted by jansson. profile_json_test.c covers this file. */
#include "lib/plan/json/json_text.h"

#include "lib/base/status.h"

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void slc_json_text_add(slc_json_text *text, const char *format, ...)
{
    va_list args;
    if (text->status) return;
    if (!text->out) text->out = open_memstream(&text->bytes, &text->length);
    va_start(args, format);
    if (!text->out || vfprintf(text->out, format, args) < 0)
        text->status = slc_error(SLUICE_ERR_MEMORY, "JSON of %zu bytes", text->length);
    va_end(args);
}

void slc_json_text_value(slc_json_text *text, const char *before, json_t *value)
{
    char *dumped = json_dumps(value, JSON_ENCODE_ANY);
    slc_json_text_add(text, "%s%s", before, dumped ? dumped : "");
    if (!dumped && !text->status)
        text->status = slc_error(SLUICE_ERR_FORMAT, "JSON: a name is not UTF-8, or no memory is left");
    free(dumped);
    json_decref(value);
}

void slc_json_text_string(slc_json_text *text, const char *before, const char *string)
{
    slc_json_text_value(text, before, json_string(string));
}

/* Replaces the locale's decimal point, which may be several bytes, by a full stop. */
static void make_point_plain(char *number)
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
}

void slc_json_text_real(slc_json_text *text, const char *before, double real)
{
    char number[64];
    if (!isfinite(real)) {
        if (!text->status) text->status = slc_error(SLUICE_ERR_FORMAT, "JSON: a time or rate is not finite");
        return;
    }
    int digits = 15;
    do snprintf(number, sizeof number, "%.*g", digits, real);
    while (strtod(number, NULL) != real && ++digits <= 17);
    make_point_plain(number);
    slc_json_text_add(text, "%s%s", before, number);
}

sluice_status slc_json_text_finish(slc_json_text *text, char **out)
{
    if (text->out && fclose(text->out) && !text->status)
        text->status = slc_error(SLUICE_ERR_MEMORY, "JSON of %zu bytes", text->length);
    sluice_status status = text->status;
    if (status)
        free(text->bytes);
    else
        *out = text->bytes;
    *text = (slc_json_text){0};
    return status;
}
