/* The tables of what `sluice nccl` shows. A column is one row of a list in tables.c: the table for people, the JSON and
 * the table in docs/formats.md are made of it. One thread. */
#pragma once

#include "bench/nccl/summary/summary.h"

/* The type of a column. Each line names the member of slc_nccl_cell that holds a row's value, how the JSON writes the
 * value, and how the table for people shows it. */
typedef enum {
    SLC_NCCL_TEXT,    /* text: a string; as it is */
    SLC_NCCL_COUNT,   /* integer: an integer; all digits */
    SLC_NCCL_BYTES,   /* integer: an integer; 2.9 MiB */
    SLC_NCCL_SECONDS, /* number: a real number; 571 us */
    SLC_NCCL_RATE,    /* number: a real number; two digits after the point */
    SLC_NCCL_MEAN,    /* number: a real number; six digits */
    SLC_NCCL_PERCENT, /* number: a real number; 5.1 % */
    SLC_NCCL_KEY,     /* key: 16 hexadecimal digits, null if it is 0; the first four of them */
    SLC_NCCL_SWITCH,  /* yes: true or false; the JSON alone has it */
    SLC_NCCL_LIST,    /* json: a list, and OBJECT an object; the JSON alone has them */
    SLC_NCCL_OBJECT,
} slc_nccl_cell_type;

enum { SLC_NCCL_CELL_BYTES = 320 };

typedef struct {
    union {
        const char *text;
        int64_t integer; /* SLC_NCCL_NONE: not known */
        double number;   /* NaN: not known */
        uint64_t key;
        bool yes;
        json_t *json; /* owned by who asked for the cell */
    };
    char room[SLC_NCCL_CELL_BYTES]; /* for a text that is made */
} slc_nccl_cell;

#define SLC_NCCL_NONE INT64_MIN

typedef struct {
    const char *key;     /* in the JSON; NULL: the table for people alone has the column */
    const char *heading; /* in the table for people; NULL: the JSON alone has it */
    slc_nccl_cell_type type;
    const char *unit; /* "": none */
    int width;        /* for people; below 0: to the left; 0: as much as the text takes */
    int gap;          /* blanks between it and the column before, beyond one */
    const char *doc;  /* for docs/formats.md */
} slc_nccl_column;

enum { SLC_NCCL_COLUMNS_MAX = 24, SLC_NCCL_RANKS_BYTES = 24 };

typedef struct {
    const char *name; /* of the list in the JSON */
    const slc_nccl_column *columns;
    size_t column_count;
    size_t (*count)(const slc_nccl_summary *summary); /* rows */
    /* Fills a cell for each column. Returns false for a row that is not shown. */
    bool (*fill)(const slc_nccl_summary *summary, size_t row, slc_nccl_cell *cells);
    size_t most;      /* rows for people */
    const char *more; /* said of those beyond it: "and 3 more processes" */
} slc_nccl_table;

extern const slc_nccl_table slc_nccl_processes, slc_nccl_communicators, slc_nccl_traffic_rows, slc_nccl_sizes,
    slc_nccl_sequences;

/* Writes the ranks that the process is in the communicator of its first row, as "0-3, 5", into
 * out[SLC_NCCL_RANKS_BYTES], and returns it. */
const char *slc_nccl_own_ranks(const slc_nccl_process *process, char *out);

/* Prints the table for people; columns of which no row knows anything are left out. Returns false if there is no
 * row, and nothing is printed. */
bool slc_nccl_table_print(const slc_nccl_table *table, const slc_nccl_summary *summary, FILE *out);

/* Returns the list for the JSON; NULL: no memory. */
json_t *slc_nccl_table_json(const slc_nccl_table *table, const slc_nccl_summary *summary);

/* Prints what the keys of all tables mean, as Markdown. */
void slc_nccl_tables_describe(FILE *out);
