/* Errors of a process that may start no more threads or processes. */
#pragma once

#include <sluice/status.h>

/* Returns SYSTEM: `what`, a thread or a process, could not be started for `error`, which pthread_create returned or
 * fork left in errno. If a limit is the cause, the line says which, and what to do. */
sluice_status slc_thread_limit_error(int error, const char *what);
