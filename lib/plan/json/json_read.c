/* Checks jansson's values against tables of keys and types. profile_json_test.c covers this file. */
#include "lib/plan/json/json_read.h"

#include "lib/base/status.h"

#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_BYTES = 512, TEXT_BYTES_MAX = 1023, KEYS_BYTES = 512 };

/* ---- Errors ---- */

static size_t put_place(const slc_json_place *at, char *path, size_t room)
{
    if (!at->in) return (size_t)snprintf(path, room, "$");
    size_t used = put_place(at->in, path, room);
    if (used >= room) return used;
    if (at->key) return used + (size_t)snprintf(path + used, room - used, ".%s", at->key);
    return used + (size_t)snprintf(path + used, room - used, "[%zu]", at->index);
}

sluice_status slc_json_fault(const slc_json_place *at, const char *format, ...)
{
    char path[PATH_BYTES], what[2 * PATH_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    put_place(at, path, sizeof path);
    return slc_error(SLUICE_ERR_FORMAT, "%s: %s", path, what);
}

/* The text is ASCII only, so that it can be cut anywhere. */
void slc_json_show(const json_t *value, char out[SLC_JSON_SHOWN_BYTES])
{
    size_t used = json_dumpb(value, out, SLC_JSON_SHOWN_BYTES - 4,
                             JSON_ENCODE_ANY | JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(15));
    if (used > SLC_JSON_SHOWN_BYTES - 4) {
        memcpy(out + SLC_JSON_SHOWN_BYTES - 4, "...", 4);
        return;
    }
    out[used] = '\0';
}

/* ---- Values ---- */

typedef struct {
    const char *what, *expected;
} type_words;

static const type_words words[] = {
    [SLC_JSON_NAME] = {"name", "a text of 1 to 1023 bytes without control characters"},
    [SLC_JSON_TEXT] = {"text", "a string of at most 1023 bytes without control characters"},
    [SLC_JSON_FLAG] = {"truth", "true or false"},
    [SLC_JSON_COUNT] = {"count", "a whole number from 1 to 1073741824"},
    [SLC_JSON_INDEX] = {"index", "a whole number from 0 to 2147483647"},
    [SLC_JSON_SIZE] = {"size", "a whole number from 0 to 2^62"},
    [SLC_JSON_SECONDS] = {"time", "seconds from 0 to 1e9"},
    [SLC_JSON_RATE] = {"rate", "bytes a second from 1 to 1e18"},
    [SLC_JSON_FACTOR] = {"factor", "a number from 0 to 1e6"},
    [SLC_JSON_NUMBER] = {"number", "any finite number"},
    [SLC_JSON_ARRAY] = {"array", "[...]"},
    [SLC_JSON_OBJECT] = {"object", "{...}"},
    [SLC_JSON_ANY] = {"value", "any"},
};

static bool is_text(const json_t *value, size_t least)
{
    size_t length = json_string_length(value);
    if (!json_is_string(value) || length < least || length > TEXT_BYTES_MAX) return false;
    for (const char *c = json_string_value(value); *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f) return false;
    return true;
}

static bool whole_number(const json_t *value, uint64_t least, uint64_t most, uint64_t *out)
{
    if (json_is_integer(value)) {
        if (json_integer_value(value) < 0) return false;
        *out = (uint64_t)json_integer_value(value);
    } else {
        double real = json_is_real(value) ? json_real_value(value) : -1;
        if (!(real >= 0) || real > 0x1p62 || real != floor(real)) return false;
        *out = (uint64_t)real;
    }
    return *out >= least && *out <= most;
}

static bool real_number(const json_t *value, double least, double most, double *out)
{
    double real = json_is_number(value) ? json_number_value(value) : NAN;
    if (!(real >= least && real <= most)) return false;
    *out = real + 0.0; /* -0 becomes 0 */
    return true;
}

static bool read_32(const json_t *value, uint64_t least, uint64_t most, void *out)
{
    uint64_t number;
    if (!whole_number(value, least, most, &number)) return false;
    *(uint32_t *)out = (uint32_t)number;
    return true;
}

static bool read_text(const json_t *value, size_t least, void *out)
{
    if (!is_text(value, least)) return false;
    *(const char **)out = json_string_value(value);
    return true;
}

static bool read_container(const json_t *value, bool fits, void *out)
{
    if (fits) *(const json_t **)out = value;
    return fits;
}

static bool read_value(const json_t *value, slc_json_type type, void *out)
{
    switch (type) {
    case SLC_JSON_NAME: return read_text(value, 1, out);
    case SLC_JSON_TEXT: return read_text(value, 0, out);
    case SLC_JSON_FLAG:
        if (json_is_boolean(value)) *(bool *)out = json_is_true(value);
        return json_is_boolean(value);
    case SLC_JSON_COUNT: return read_32(value, 1, 1u << 30, out);
    case SLC_JSON_INDEX: return read_32(value, 0, INT32_MAX, out);
    case SLC_JSON_SIZE: return whole_number(value, 0, UINT64_C(1) << 62, out);
    case SLC_JSON_SECONDS: return real_number(value, 0, 1e9, out);
    case SLC_JSON_RATE: return real_number(value, 1, 1e18, out);
    case SLC_JSON_FACTOR: return real_number(value, 0, 1e6, out);
    case SLC_JSON_NUMBER: return real_number(value, -DBL_MAX, DBL_MAX, out);
    case SLC_JSON_ARRAY: return read_container(value, json_is_array(value), out);
    case SLC_JSON_OBJECT: return read_container(value, json_is_object(value), out);
    case SLC_JSON_ANY: return read_container(value, true, out);
    }
    return false;
}

sluice_status slc_json_value(const slc_json_place *at, const json_t *value, slc_json_type type, void *out)
{
    if (read_value(value, type, out)) return SLUICE_OK;
    char shown[SLC_JSON_SHOWN_BYTES];
    slc_json_show(value, shown);
    return slc_json_fault(at, "%s is no %s; give %s", shown, words[type].what, words[type].expected);
}

/* ---- Objects ---- */

sluice_status slc_json_unknown_key(const slc_json_place *at, const char *key, const char *keys)
{
    char shown[SLC_JSON_SHOWN_BYTES];
    json_t *text = json_string(key);
    if (!text) return slc_error(SLUICE_ERR_MEMORY, "JSON");
    slc_json_show(text, shown);
    json_decref(text);
    return slc_json_fault(at, "%s is unknown%s%s", shown, *keys ? "; there are " : "", keys);
}

static sluice_status not_in_table(const slc_json_place *at, const char *key, const slc_json_field *fields, size_t count)
{
    char keys[KEYS_BYTES] = "";
    for (size_t f = 0, used = 0; f < count && used < sizeof keys; f++)
        used += (size_t)snprintf(keys + used, sizeof keys - used, "%s%s", f ? ", " : "", fields[f].key);
    return slc_json_unknown_key(at, key, keys);
}

static const slc_json_field *find_field(const slc_json_field *fields, size_t count, const char *key)
{
    for (size_t f = 0; f < count; f++)
        if (!strcmp(fields[f].key, key)) return &fields[f];
    return NULL;
}

sluice_status slc_json_members(const slc_json_place *at, const json_t *object, const slc_json_field *fields,
                               size_t field_count, void *out)
{
    json_t *whole = NULL;
    sluice_status status = slc_json_value(at, object, SLC_JSON_OBJECT, &whole);
    if (status) return status;
    const char *key;
    json_t *value;
    json_object_foreach (whole, key, value)
        if (!find_field(fields, field_count, key)) return not_in_table(at, key, fields, field_count);
    for (size_t f = 0; !status && f < field_count; f++) {
        value = json_object_get(whole, fields[f].key);
        slc_json_place member = {at, fields[f].key, 0};
        if (value)
            status = slc_json_value(&member, value, fields[f].type, (char *)out + fields[f].offset);
        else if (fields[f].required)
            status = slc_json_fault(&member, "is missing; give %s", words[fields[f].type].expected);
    }
    return status;
}

/* ---- Documents ---- */

/* Makes one line of a message: jansson quotes the text that it could not read, with its line ends. */
static void one_line(char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < ' ') *text = ' ';
}

static sluice_status check_version(const json_t *document, int oldest, int newest)
{
    char reads[40];
    slc_json_place top = {0}, place = {&top, "version", 0};
    const json_t *value = json_object_get(document, "version");
    snprintf(reads, sizeof reads, oldest < newest ? "%d to %d" : "%d", oldest, newest);
    if (!json_is_object(document)) return slc_json_fault(&top, "must be an object: {\"version\": %d, ...}", newest);
    if (!value) return slc_json_fault(&place, "is missing; this program reads %s", reads);
    char shown[SLC_JSON_SHOWN_BYTES];
    slc_json_show(value, shown);
    if (!json_is_integer(value) || json_integer_value(value) < oldest || json_integer_value(value) > newest)
        return slc_json_fault(&place, "version %s; this program reads %s", shown, reads);
    return SLUICE_OK;
}

sluice_status slc_json_parse(const char *text, size_t length, int oldest, int newest, json_t **out)
{
    json_error_t error;
    json_t *document = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);
    if (!document) {
        one_line(error.text);
        return slc_error(SLUICE_ERR_FORMAT, "line %d, column %d: %s", error.line, error.column, error.text);
    }
    sluice_status status = check_version(document, oldest, newest);
    if (status) {
        json_decref(document);
        return status;
    }
    *out = document;
    return SLUICE_OK;
}
