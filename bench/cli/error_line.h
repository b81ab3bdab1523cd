/* An error of the library as a command tells it: a line that speaks of options, and an exit code that is the same for
 * the same mistake in every command (docs/errors.md has the table). One thread. */
#pragma once

#include <sluice/status.h>
#include <stddef.h>

/* Prints "WHO: LINE" to standard error, with the options in place of the fields of sluice_config. */
void slc_print_error(const char *who, const char *line);

/* Rewrites what a line of the library says of sluice_config (`config.budget_bytes = 4096`) as an option of the command
 * (`--budget 4096`). `out` has room for `bytes`. */
void slc_error_in_options(const char *line, char *out, size_t bytes);

/* EXIT_USAGE: the user's input cannot be used (an option, a file's content, a path, a budget that is too small);
 * EXIT_INTERRUPTED; EXIT_FAILED: something else failed, a full disk, a file that has vanished or a dead rank. */
int slc_exit_code(sluice_status status);
