/* The pages about a program of subcommands: sluice.1, docs/command.md, and the completion for bash. They are made from
 * the tables of its commands, so they have what the parsers accept. Private to bench/cli. */
#pragma once

#include "bench/cli/tool.h"

/* Prints one to standard output: `form` is man, markdown or bash. Returns the exit code. */
int slc_pages_print(const slc_tool *program, const char *form);
