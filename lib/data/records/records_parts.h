/* The parts of a set of records. Private to lib/data/records. */
#pragma once

#include "lib/data/records/labels.h"
#include "lib/data/records/records.h"

/* The places where the records of one file begin. */
typedef struct {
    uint64_t count;
    uint64_t *begins; /* in memory; NULL: in `file` */
    slc_file file;
    uint64_t at; /* of the first number in `file` */
    slc_labels labels;
    uint64_t odd[SLC_RECORDS_ODDITIES]; /* the first record of each kind, from 1; 0: there is none */
} slc_records_index;

typedef struct {
    slc_file file;
    slc_records_form form;
    int column[SLC_FIELDS], columns; /* of a table; -1: it has no such column */
    slc_records_index index;
    uint64_t first; /* record, in the whole set */
} slc_records_file;

struct slc_records {
    slc_records_file *files;
    size_t count;
    uint64_t records;
    slc_field_names names;
    bool have[SLC_FIELDS];
    uint64_t fingerprint;
    char *note;
};

/* ---- Finding records (index.c) ---- */

typedef struct {
    const slc_records *set; /* its fields are known */
    const slc_records_how *how;
    uint64_t done, bytes; /* of all files, for `progress` */
    char **note;          /* gets a line if an index could not be kept; NULL before */
} slc_index_making;

/* Finds the beginnings of all records and checks each, or takes what an earlier run found, if the file and the fields
 * are as they were then. `header`: the first record is none (it names columns). Errors: those of slc_records_open. */
sluice_status slc_records_index_make(const slc_records_file *part, bool header, slc_index_making *making,
                                     slc_records_index *out);
/* Finds where the first SLC_INDEX_BEGINNINGS records begin, a header among them, and the file's end after the last of
 * fewer. Error: IO, MEMORY. */
enum { SLC_INDEX_BEGINNINGS = 3 };
sluice_status slc_records_index_begin(const slc_records_file *part, uint64_t places[SLC_INDEX_BEGINNINGS],
                                      uint64_t *count);
void slc_records_index_free(slc_records_index *index);
/* Gives where record `number` begins, and where the next one does: the file's end for the last. Errors: IO. */
sluice_status slc_records_index_find(const slc_records_index *index, const slc_file *data, uint64_t number,
                                     uint64_t place[2]);

/* ---- Checking (check.c) ---- */

/* The turns of a conversation, added one by one; begun as {0}. */
typedef struct {
    uint32_t count; /* behind the system's */
    bool system, speaks, unknown, uneven;
} slc_turns;

static inline void slc_turns_add(slc_turns *t, slc_span role)
{
    const bool user = slc_span_is(role, "user"), assistant = slc_span_is(role, "assistant"),
               system = slc_span_is(role, "system");
    t->speaks = t->speaks || assistant;
    t->unknown = t->unknown || !(user || assistant || system);
    if (system && !t->count && !t->system) {
        t->system = true;
        return;
    }
    t->uneven = t->uneven || !(t->count % 2 ? assistant : user);
    t->count++;
}

/* The properties of a record that are found while it is checked. */
typedef struct {
    slc_span label;
    bool empty; /* there is no byte of text in it */
    slc_turns turns;
} slc_records_about;

/* Begun with a set whose fields are known, and a file of it, and ended by slc_records_check_end. */
typedef struct {
    const slc_records *set;
    const slc_records_file *part;
    slc_records_index *index; /* gets the labels and what is odd */
    slc_records_item record;
    uint64_t count; /* records that were checked */
} slc_records_check;

/* Checks the next record, which is the piece of the file from place[0] to place[1]. `text` is that piece; NULL: it is
 * read. Errors: FORMAT (names file and line), IO, MEMORY. */
sluice_status slc_records_check_next(slc_records_check *check, const uint64_t place[2], const char *text);
void slc_records_check_end(slc_records_check *check);

/* ---- One record (read_record.c) ---- */

/* Puts the piece of a file from place[0] to place[1] into the record's line, without the line's end and white space
 * lines behind it. `text` is that piece; NULL: it is read. Errors: IO, FORMAT (too long), MEMORY. */
sluice_status slc_records_take_line(const slc_records_file *part, const uint64_t place[2], const char *text,
                                    slc_records_item *record, size_t *bytes);
/* Reads such a piece as a record. Errors: as slc_records_read. */
sluice_status slc_records_read_at(const slc_records *set, const slc_records_file *part, const uint64_t place[2],
                                  const char *text, slc_records_item *record);
/* The line of a file's byte, from 1; 0: the file cannot be read. */
uint64_t slc_records_line_number(const slc_records_file *part, uint64_t at);

/* ---- Lines (json_scan.c, json_line.c, table_row.c) ---- */

/* Returns true if the line is a record of the set without any doubt; *about then says what is found out, and points
 * into the line. */
bool slc_json_line_scan(const slc_records *set, const char *line, size_t bytes, slc_records_about *about);

/* Fill the record's fields from the `bytes` bytes in record->line. A fault is written to `why`, which is "" for a
 * record that is right. Error: MEMORY. */
enum { SLC_RECORDS_WHY_ROOM = 256 };
sluice_status slc_json_line_read(const slc_records *set, size_t bytes, slc_records_item *record,
                                 char why[SLC_RECORDS_WHY_ROOM]);
sluice_status slc_table_row_read(const slc_records *set, const slc_records_file *part, size_t bytes,
                                 slc_records_item *record, char why[SLC_RECORDS_WHY_ROOM]);

/* The next field of a row, in place: quotes are taken off. False after the last. `rest` is what is left of the row. */
bool slc_table_next_field(slc_records_form form, slc_span *rest, bool *more, char *row, slc_span *out);
