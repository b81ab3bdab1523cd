/* The help of a command, in all its forms: what --help prints, and the manual page, the section of docs/command.md and
 * the completion that are made from the same rows of an argp parser. One thread.
 *
 * The parser's `doc` has two halves with \v between them. The first says what the command does. In the second, lines
 * become paragraphs, which are wrapped; lines that begin with a space stay as they are. After a line "Examples:" the
 * lines that begin with two spaces are the examples, and a line that begins with "More: " names the page in docs/ where
 * one reads on. An option's `arg` may list what can be given, as "HOW=auto,none,all": help shows the word before the
 * equals sign, completion offers the words after it. If the word is FILE, DIR or PATH, completion offers files. */
#pragma once

#include "bench/cli/help/short_option.h"

#include <argp.h>
#include <stdio.h>

typedef enum {
    SLC_HELP_SHORT,    /* the options marked SLC_OPTION_SHORT; all of them if none is */
    SLC_HELP_ALL,      /* all options, and the notes */
    SLC_HELP_USAGE,    /* one paragraph */
    SLC_HELP_MAN,      /* for man(7) */
    SLC_HELP_MARKDOWN, /* a section of docs/command.md */
    SLC_HELP_BASH,     /* the command's branch in the completion */
} slc_help_format;

/* Prints the help of "sluice train", which has this parser and its children. Returns 0, or -1: no memory. */
int slc_help_print(const struct argp *parser, const char *program, slc_help_format format, FILE *out);

/* Returns the width of the terminal on standard output in characters, from 40 to 120. If standard output is no
 * terminal, the width is that of COLUMNS, or 80. */
int slc_help_width(void);
