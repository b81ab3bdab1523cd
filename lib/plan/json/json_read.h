/* Reads JSON with errors that say where: "$.layers[3].forward_s: -1 is no time; give seconds from 0 to 1e9". Objects
 * are read by tables of their keys; a key that is not in the table is an error. Built on jansson, for lib/plan and the
 * engine's checkpoints. All errors are FORMAT except MEMORY. */
#pragma once

#include <jansson.h>
#include <sluice/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The place of a value in the text. Places lie on the stack; each points to the one around it. */
typedef struct slc_json_place {
    const struct slc_json_place *in; /* NULL: this is the whole text */
    const char *key;                 /* NULL: an element of an array */
    size_t index;
} slc_json_place;

/* The form that a value must have, and the type that it is read into. Strings and containers are borrowed from the
 * document. */
typedef enum {
    SLC_JSON_NAME,    /* const char *: 1 to 1023 bytes, no control characters */
    SLC_JSON_TEXT,    /* const char *: the same, or empty */
    SLC_JSON_FLAG,    /* bool */
    SLC_JSON_COUNT,   /* uint32_t, 1 to 2^30 */
    SLC_JSON_INDEX,   /* uint32_t, 0 to 2^31 - 1 */
    SLC_JSON_SIZE,    /* uint64_t, 0 to 2^62; whole numbers may be written as 1.5e9 */
    SLC_JSON_SECONDS, /* double, 0 to 1e9 */
    SLC_JSON_RATE,    /* double, 1 to 1e18, bytes a second */
    SLC_JSON_FACTOR,  /* double, 0 to 1e6 */
    SLC_JSON_NUMBER,  /* double, any */
    SLC_JSON_ARRAY,   /* json_t * */
    SLC_JSON_OBJECT,  /* json_t * */
    SLC_JSON_ANY      /* json_t * */
} slc_json_type;

typedef struct {
    const char *key;
    slc_json_type type;
    bool required;
    size_t offset; /* of the member in the struct that is filled */
} slc_json_field;

#define FIELD(row, member, key, type, required)                                                                        \
    {                                                                                                                  \
        key, type, required, offsetof(row, member)                                                                     \
    }

/* Sets the error line "$.path: ..." and returns FORMAT. */
sluice_status slc_json_fault(const slc_json_place *at, const char *format, ...) __attribute__((format(printf, 2, 3)));

sluice_status slc_json_unknown_key(const slc_json_place *at, const char *key, const char *there_are);

/* Writes a value as it is in the text, cut if it is long. */
enum { SLC_JSON_SHOWN_BYTES = 80 };
void slc_json_show(const json_t *value, char out[SLC_JSON_SHOWN_BYTES]);

/* Parses a text and checks that its "version" is one from `oldest` to `newest`. The caller decrefs the document. */
sluice_status slc_json_parse(const char *text, size_t length, int oldest, int newest, json_t **out);

sluice_status slc_json_value(const slc_json_place *at, const json_t *value, slc_json_type type, void *out);

/* Reads the members of an object into the struct `out`; members that are optional and absent stay as they were. */
sluice_status slc_json_members(const slc_json_place *at, const json_t *object, const slc_json_field *fields,
                               size_t field_count, void *out);
#define SLC_JSON_MEMBERS(at, object, fields, out)                                                                      \
    slc_json_members(at, object, fields, sizeof(fields) / sizeof *(fields), out)
