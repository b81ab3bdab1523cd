/* Records: the examples of a dataset, in files as people have them.
 *
 *   JSON lines   an object a line; empty lines are passed over (https://jsonlines.org)
 *   CSV          RFC 4180: the first line names the columns, a field in quotes may hold commas, quotes and line ends
 *   TSV          the first line names the columns; a field ends at a tab, a row at the line's end, and quotes are text
 *
 * A record has fields by their names: "text", "text_pair", "label" and "messages", or what the user calls these. The
 * first record of a set says which of them all records have.
 *
 * A set is looked through once when it is opened. That checks every record, finds the labels, and keeps the places
 * where records begin as numbers: in memory for a small file, else in a file of its own beside the data, from which
 * later runs take all of it. So a set takes the memory of the record that is read, whatever its size, and what can be
 * wrong with a record by itself is told at once. A set is read by one thread. */
#pragma once

#include "lib/base/file/file.h"

#include <jansson.h>
#include <stdbool.h>
#include <string.h>

/* ---- Names ---- */

typedef enum { SLC_FIELD_TEXT, SLC_FIELD_PAIR, SLC_FIELD_LABEL, SLC_FIELD_MESSAGES, SLC_FIELDS } slc_field;

/* "text", "text_pair", "label", "messages" */
const char *slc_field_name(slc_field field);

enum { SLC_FIELD_ROOM = 64 };

/* The names that the user gives the fields; begun by slc_field_names_init, which gives them their own names. */
typedef struct {
    char of[SLC_FIELDS][SLC_FIELD_ROOM];
    bool given[SLC_FIELDS];
} slc_field_names;

void slc_field_names_init(slc_field_names *names);
/* Reads "text=body,label=stars". Errors: ARGUMENT (no such field, no name, too long a name). */
sluice_status slc_field_names_read(const char *list, slc_field_names *names);

/* ---- The form of a file ---- */

typedef enum { SLC_RECORDS_NONE, SLC_RECORDS_JSON, SLC_RECORDS_CSV, SLC_RECORDS_TSV } slc_records_form;

/* "JSON lines", "CSV", "TSV"; "no records" */
const char *slc_records_form_name(slc_records_form form);

/* Says of what form a file is by its first lines; *out is NONE for a file that does not look like a dataset. A table is
 * known by the names of its columns: one of them must be among `names`. Errors: FORMAT for what looks like a dataset
 * and is none that can be read: JSON over many lines, an array of records, lines or columns without a field of these
 * names; the message says what to do. IO, MEMORY. */
sluice_status slc_records_form_of(const slc_file *file, const slc_field_names *names, slc_records_form *out);

/* ---- Sets ---- */

typedef struct slc_records slc_records;

typedef struct {
    slc_field_names names;
    slc_records_form form;    /* NONE: each file by its content */
    const char *index_folder; /* where the beginnings of records are kept; NULL: beside each file */
    uint64_t index_from;      /* a file of so many bytes has its index kept; 0: 64 MiB */
    /* Called now and then while records are looked for: bytes that are done, of all of them. A status that is not OK
     * ends the opening and is returned. NULL: none. */
    sluice_status (*progress)(uint64_t done, uint64_t bytes, void *context);
    void *context;
} slc_records_how;

/* A path is a regular file, or a folder, whose regular files are taken in the order of their names. The caller closes.
 * Errors: PATH, IO, ARGUMENT (empty files, a folder without files, no records), FORMAT (a record that cannot be read,
 * as slc_records_read says; a first one that lacks what slc_records_form_of asks for), MEMORY, what `progress`
 * returned. */
sluice_status slc_records_open(const char *const *paths, size_t count, const slc_records_how *how, slc_records **out);
void slc_records_close(slc_records *records); /* NULL is allowed */

uint64_t slc_records_count(const slc_records *records);
uint64_t slc_records_files(const slc_records *records);
uint64_t slc_records_bytes(const slc_records *records); /* of all files */
/* The first file's path. Valid as long as the set. */
const char *slc_records_path(const slc_records *records);
bool slc_records_have(const slc_records *records, slc_field field);
/* Oddities of records are no mistakes, and yet some models have no use for such a record. */
typedef enum {
    SLC_RECORDS_EMPTY,  /* none of its texts has a byte */
    SLC_RECORDS_MUTE,   /* a conversation with a role that is none of system, user and assistant, or without the last */
    SLC_RECORDS_UNEVEN, /* a conversation that is not user and assistant by turns, after at most one of the system */
    SLC_RECORDS_ODDITIES,
} slc_records_oddity;

/* Returns the number of the first record of this kind; UINT64_MAX: there is none. */
uint64_t slc_records_first(const slc_records *records, slc_records_oddity oddity);
/* The name that the user gives the field. Valid as long as the set. */
const char *slc_records_name(const slc_records *records, slc_field field);
/* A line on an index that could not be kept; NULL: none. Valid as long as the set. */
const char *slc_records_note(const slc_records *records);
/* A hash of the files' sizes and of pieces of them, and of the names of fields: ranks compare it. */
uint64_t slc_records_fingerprint(const slc_records *records);
/* A hash of every byte, which takes as long as reading them once. Errors: IO, MEMORY. */
sluice_status slc_records_content(const slc_records *records, uint64_t *hash);
/* Writes "FILE, line N" of a record, for messages. */
enum { SLC_RECORDS_PLACE_ROOM = 512 };
void slc_records_place(const slc_records *records, uint64_t index, char out[SLC_RECORDS_PLACE_ROOM]);

/* ---- Records ---- */

typedef struct {
    const char *text; /* UTF-8, not ended by 0 */
    size_t bytes;
} slc_span;

static inline bool slc_span_is(slc_span span, const char *word)
{
    return span.bytes == strlen(word) && !memcmp(span.text, word, span.bytes);
}

typedef struct {
    slc_span role, content;
} slc_records_message;

/* Begun as {0}, used for one record after the other, and freed by slc_records_item_free. The memory that it points to
 * is valid until the next record is read. */
typedef struct {
    slc_span text, pair; /* {0}: the set has no such field */
    slc_span label;      /* a whole number as its digits; a word as it is */
    slc_records_message *messages;
    size_t message_count, message_room;
    char *line;
    size_t line_room;
    char number[32];
    json_t *object;
} slc_records_item;

/* Reads record `index`, below the number of records. Errors: IO; FORMAT (the file is no longer what it was), MEMORY. A
 * record that is wrong is no JSON, lacks a field that the first record has, has one of another type, or other columns
 * than the first row; the message names the file and the line, and says what to do. */
sluice_status slc_records_read(const slc_records *records, uint64_t index, slc_records_item *record);
void slc_records_item_free(slc_records_item *record);
