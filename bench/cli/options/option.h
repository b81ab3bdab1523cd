/* The options of a command as a table: a row has an option's name, the field that it sets, its default, its limits and
 * its help, and each of these stands there once. command_line.h parses by such rows. Strings stay their owner's (argv,
 * the table). One thread. */
#pragma once

#include "bench/cli/help/help.h"

#include <sluice/status.h>
#include <stdbool.h>
#include <stddef.h>

/* The kind of an option's value. Each line says which C type its field has, and which text it takes. */
typedef enum {
    SLC_OPTION_TEXT,  /* const char *: any text; `choices` are offered, and the command checks them */
    SLC_OPTION_WORD,  /* const char *: one of `choices` */
    SLC_OPTION_COUNT, /* an unsigned integer of any width: a whole number from `least` to `most` */
    SLC_OPTION_REAL,  /* double: a number from `least` to `most` */
    SLC_OPTION_SIZE,  /* uint64_t: bytes, as 900MiB, from `least` to `most`; most 0: there is no upper limit */
    SLC_OPTION_TIME,  /* double: seconds, as 50ms; not 0 if `least` is SLC_OPTION_ABOVE_0 */
    SLC_OPTION_FLAG,  /* bool or an integer, which becomes 1: the option takes nothing */
    SLC_OPTION_SET,   /* what `set` makes of the text */
} slc_option_type;

/* A flag of a row, next to SLC_OPTION_SHORT: no help lists the option. Flags below SLC_OPTION_SHORT are the command's
 * own. */
enum { SLC_OPTION_HIDDEN = SLC_OPTION_SHORT << 1 };

#define SLC_OPTION_ABOVE_0 1e-30

typedef struct slc_option {
    const char *name, *argument; /* "N": the word in the help; "NAME=a,b": completion offers a and b; NULL: a FLAG */
    int group;                   /* the help shows one after the other; see slc_command_line.headings */
    slc_option_type type;
    size_t field, bytes;  /* SLC_OPTION_FIELD */
    const char *fallback; /* the default as a user would type it, which the help tells; NULL: the field stays */
    unsigned flags;
    const char *doc;
    double least, most;
    const char *choices; /* with commas; completion offers them if `argument` lists none itself */
    const char *later;   /* choices that are known and not yet built, for the command's own check */
    size_t config;       /* a field of what the command makes of its options; 0: none */
    char letter;         /* the short option; 0: none */
    const char *note;    /* the help tells it after the default, as ", at most -e" */
    const char *refused; /* why the command does not take it; its help leaves the option out */
    bool list;           /* of a number: several with commas are taken, of which the field gets the first */
    sluice_status (*set)(void *options, const struct slc_option *row, char *text);
} slc_option;

/* The field of the struct `type` that an option sets. */
#define SLC_OPTION_FIELD(type, name) .field = offsetof(type, name), .bytes = sizeof(((type *)NULL)->name)

/* Returns the row of this name among those up to the first without a name; NULL: there is none. */
const slc_option *slc_option_find(const slc_option *rows, const char *name);

/* Returns the text that the user typed for the option of this name, "" for a FLAG. It returns NULL if the user typed
 * nothing; then the option has its default. slc_command_line.typed describes `typed`. */
const char *slc_option_typed(const slc_option *rows, const char *const *typed, const char *name);

/* Gives the fields of `options` that have a default their defaults. */
void slc_option_defaults(const slc_option *rows, void *options);

/* Sets the row's field as `text` says; a FLAG needs no text. The text must live as long as the options. Errors:
 * ARGUMENT names the option, quotes the text and says what is taken; those of `set`. */
sluice_status slc_option_set(const slc_option *row, void *options, char *text);

/* Reads a number within the row's limits: a whole number if the row is a COUNT, else a REAL. A row's `set` may call it
 * too. Errors: ARGUMENT. */
sluice_status slc_option_number(const slc_option *row, const char *text, double *out);

/* Copies a text that an option holds, for as long as the process lives; the copy may be cut up. NULL without memory.
 * One thread. */
char *slc_option_keep(const char *text);

/* The place of a value in a list with commas; -1: it is not there. */
int slc_option_place(const char *list, const char *value);
