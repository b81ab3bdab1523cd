/* A subcommand's arguments, by argp: the same rules for all of them. */
#pragma once

#include "bench/cli/help/help.h"

#include <argp.h>

/* Parses argv by `parser` and its children, as argp_parse does with these flags and this input. It answers --help,
 * --help-all, --usage and --help=FORM (all, man, markdown, bash) itself; -h is --help if the parser has no -h of its
 * own. An unknown long option is refused with the nearest one there is. Ends the process with EXIT_USAGE after a
 * mistake, with 0 after help. bench/cli/help/help.h says how the parser's texts are read. */
void slc_parse(const struct argp *parser, int argc, char **argv, unsigned flags, void *input);
