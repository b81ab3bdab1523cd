/* The exit codes of commands (docs/launching.md has the table). */
#pragma once

/* EXIT_OUT_OF_TIME: the run saved and ended before its last step, because its time was nearly over; the same command
 * continues it. */
enum { EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_OUT_OF_TIME = 75, EXIT_INTERRUPTED = 130 };
