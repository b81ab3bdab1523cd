/* A subcommand's arguments, by argp: the same rules for all of them. */
#ifndef SLC_BENCH_PARSE_H
#define SLC_BENCH_PARSE_H

#include <argp.h>

/* Parses argv by `parser` and its children, as argp_parse does with these flags and this input. -h is --help where the
 * parser has no -h of its own; an unknown long option is refused with the nearest one there is. Ends the process with
 * EXIT_USAGE after a mistake, with 0 after --help. */
void slc_parse(const struct argp *parser, int argc, char **argv, unsigned flags, void *input);

#endif
