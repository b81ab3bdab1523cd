/* The exit codes of commands (docs/launching.md has the table). */
#pragma once

/* OUT_OF_TIME: a run has saved and left before it was done, because its time ends; the same command goes on with it. */
enum { EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_OUT_OF_TIME = 75, EXIT_INTERRUPTED = 130 };
