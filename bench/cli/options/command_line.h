/* The command line of a subcommand: its options as a table, its arguments, its text for help. Parser, help, manual
 * page, completion and docs/command.md follow from it. One thread. */
#pragma once

#include "bench/cli/options/option.h"

/* `options` is the command's own struct, whose fields the rows and the other columns name. Functions that return a
 * status refuse with its message, and the process ends with EXIT_USAGE. A field that is 0 or NULL means: none. */
typedef struct slc_command_line {
    const slc_option *rows;      /* up to one without a name */
    const char *const *headings; /* of the rows' groups, by their number, as "With --data:" */
    const char *arguments;       /* that follow the options, as "[DIR...]" */
    const char *doc;             /* bench/cli/help/help.h */
    const char *hint;            /* said if an argument is not taken, as "the prompt is --prompt TEXT" */
    size_t typed;                /* a field const char *[], as long as `rows`, for slc_option_typed */
    size_t program;              /* a field char *const *: the first argument and all that follow it, which are
                                    another program's */
    size_t argument;             /* a field const char *: the one argument, which must be given */
    sluice_status (*take)(void *options, char *argument); /* each argument, if `argument` is not used */
    sluice_status (*check)(void *options); /* after the last option: what excludes each other, what is missing */
    void (*begin)(void *options);          /* sets defaults, instead of slc_option_defaults */
    const struct slc_command_line *shared; /* options that several commands have, in the struct that lies at
                                              `shared_field` of this one; it takes what this one does not */
    size_t shared_field;
} slc_command_line;

/* Sets the defaults, then what argv says (bench/cli/options/parse.h). Other fields of `options` stay. Ends the process
 * after a mistake and after help. */
void slc_command_line_parse(const slc_command_line *line, int argc, char **argv, void *options);
