/* The parts of a set of records. Private to lib/data/records. */
#pragma once

#include "lib/data/records/records.h"

/* The places where the records of one file begin. */
typedef struct {
    uint64_t count;
    uint64_t *begins; /* in memory; NULL: in `file` */
    slc_file file;
    uint64_t at; /* of the first number in `file` */
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
    const slc_records_how *how;
    uint64_t done, bytes; /* of all files, for `progress` */
    char **note;          /* gets a line if an index could not be kept; NULL before */
} slc_index_making;

/* Finds the beginnings of all records, or takes them from an index of an earlier run, if the file is as it was then.
 * `header`: the first record is none (it names columns). Errors: those of slc_records_open. */
sluice_status slc_records_index_make(const slc_records_file *part, bool header, slc_index_making *making,
                                     slc_records_index *out);
void slc_records_index_free(slc_records_index *index);
/* Gives where record `number` begins, and where the next one does: the file's end for the last. Errors: IO. */
sluice_status slc_records_index_find(const slc_records_index *index, const slc_file *data, uint64_t number,
                                     uint64_t place[2]);

/* ---- Lines (json_line.c, table_row.c) ---- */

/* Fill the record's fields from the `bytes` bytes in record->line. A fault is written to `why`, which is "" for a
 * record that is right. Error: MEMORY. */
enum { SLC_RECORDS_WHY_ROOM = 256 };
sluice_status slc_json_line_read(const slc_records *set, size_t bytes, slc_records_item *record,
                                 char why[SLC_RECORDS_WHY_ROOM]);
sluice_status slc_table_row_read(const slc_records *set, const slc_records_file *part, size_t bytes,
                                 slc_records_item *record, char why[SLC_RECORDS_WHY_ROOM]);

/* The next field of a row, in place: quotes are taken off. False after the last. `rest` is what is left of the row. */
bool slc_table_next_field(slc_records_form form, slc_span *rest, bool *more, char *row, slc_span *out);
