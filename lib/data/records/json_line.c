/* One object of JSON, on a line of its own. record_files_test.c covers this file. */
#include "lib/base/array.h"
#include "lib/base/status.h"
#include "lib/base/text/python_json.h"
#include "lib/data/records/records_parts.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static slc_span span_of(const json_t *text)
{
    return (slc_span){json_string_value(text), json_string_length(text)};
}

static const char *type_name(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT: return "an object";
    case JSON_ARRAY: return "a list";
    case JSON_STRING: return "a text";
    case JSON_INTEGER:
    case JSON_REAL: return "a number";
    case JSON_NULL: return "null";
    default: return "true or false";
    }
}

static const json_t *field_of(const slc_records *set, const slc_records_item *record, slc_field field, char *why)
{
    const json_t *value = json_object_get(record->object, set->names.of[field]);
    if (!value)
        snprintf(why, SLC_RECORDS_WHY_ROOM, "has no field \"%s\", which the first record has", set->names.of[field]);
    return value;
}

static void read_text(const slc_records *set, slc_records_item *record, slc_field field, slc_span *out, char *why)
{
    const json_t *value = field_of(set, record, field, why);
    if (value && !json_is_string(value))
        snprintf(why, SLC_RECORDS_WHY_ROOM, "\"%s\" is %s; it must be a text", set->names.of[field], type_name(value));
    else if (value)
        *out = span_of(value);
}

/* Reads a label. A whole number that Python wrote as 1.0 counts as 1. */
static void read_label(const slc_records *set, slc_records_item *record, char *why)
{
    const json_t *value = field_of(set, record, SLC_FIELD_LABEL, why);
    const double real = json_number_value(value);
    if (!value) return;
    if (json_is_string(value)) {
        record->label = span_of(value);
        return;
    }
    if (json_is_boolean(value)) {
        snprintf(record->number, sizeof record->number, "%s", json_is_true(value) ? "true" : "false");
    } else if (json_is_integer(value)) {
        snprintf(record->number, sizeof record->number, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    } else if (json_is_real(value) && real == floor(real) && fabs(real) < 1e15) {
        snprintf(record->number, sizeof record->number, "%.0f", real);
    } else {
        snprintf(why, SLC_RECORDS_WHY_ROOM, "\"%s\" is %s; a class is a whole number or a word",
                 set->names.of[SLC_FIELD_LABEL], json_is_real(value) ? "a number with a fraction" : type_name(value));
        return;
    }
    record->label = (slc_span){record->number, strlen(record->number)};
}

static sluice_status read_messages(const slc_records *set, slc_records_item *record, char *why)
{
    const json_t *list = field_of(set, record, SLC_FIELD_MESSAGES, why), *message;
    size_t i;
    record->message_count = 0;
    if (!list) return SLUICE_OK;
    if (!json_is_array(list) || !json_array_size(list)) {
        snprintf(why, SLC_RECORDS_WHY_ROOM, "\"%s\" is %s; it must be a list of messages",
                 set->names.of[SLC_FIELD_MESSAGES], json_is_array(list) ? "an empty list" : type_name(list));
        return SLUICE_OK;
    }
    json_array_foreach ((json_t *)list, i, message) {
        const json_t *role = json_object_get(message, "role"), *content = json_object_get(message, "content");
        if (!json_is_string(role) || !json_is_string(content)) {
            snprintf(why, SLC_RECORDS_WHY_ROOM, "message %zu of \"%s\" is not {\"role\": a text, \"content\": a text}",
                     i + 1, set->names.of[SLC_FIELD_MESSAGES]);
            return SLUICE_OK;
        }
        if (record->message_count == record->message_room) {
            if (!SLC_ROOM_FOR_ONE(record->messages, record->message_room))
                return slc_error(SLUICE_ERR_MEMORY, "messages of a record");
            record->message_room = record->message_room ? 2 * record->message_room : 1;
        }
        record->messages[record->message_count++] = (slc_records_message){span_of(role), span_of(content)};
    }
    return SLUICE_OK;
}

/* Parses a line. Python also writes numbers of any length, and NaN, which JSON does not have: such a line is read
 * another way. */
static sluice_status parse(const char *line, size_t bytes, json_t **out, char *why)
{
    json_error_t error;
    *out = json_loadb(line, bytes, JSON_ALLOW_NUL, &error);
    if (*out) return SLUICE_OK;
    if (slc_python_json_read("", line, bytes, JSON_ALLOW_NUL, out) == SLUICE_OK) return SLUICE_OK;
    *out = NULL;
    if (json_error_code(&error) == json_error_out_of_memory) return slc_error(SLUICE_ERR_MEMORY, "a record");
    if (json_error_code(&error) == json_error_invalid_utf8)
        snprintf(why, SLC_RECORDS_WHY_ROOM,
                 "is no UTF-8 at byte %d; if the file is in Latin-1, iconv -f LATIN1 -t UTF-8 converts it",
                 error.position);
    else
        snprintf(why, SLC_RECORDS_WHY_ROOM, "is no JSON: %.160s, at byte %d", error.text, error.position);
    return SLUICE_OK;
}

sluice_status slc_json_line_read(const slc_records *set, size_t bytes, slc_records_item *record,
                                 char why[SLC_RECORDS_WHY_ROOM])
{
    json_decref(record->object);
    record->object = NULL;
    sluice_status status = parse(record->line, bytes, &record->object, why);
    if (status || *why) return status;
    if (!json_is_object(record->object)) {
        snprintf(why, SLC_RECORDS_WHY_ROOM, "is %s; each line must be an object", type_name(record->object));
        return SLUICE_OK;
    }
    if (set->have[SLC_FIELD_TEXT]) read_text(set, record, SLC_FIELD_TEXT, &record->text, why);
    if (set->have[SLC_FIELD_PAIR]) read_text(set, record, SLC_FIELD_PAIR, &record->pair, why);
    if (set->have[SLC_FIELD_LABEL]) read_label(set, record, why);
    return set->have[SLC_FIELD_MESSAGES] ? read_messages(set, record, why) : SLUICE_OK;
}
