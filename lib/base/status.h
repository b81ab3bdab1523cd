/* Errors: a status together with a line that says what failed, where, and what to do. Any thread. */
#pragma once

#include "lib/base/error_line.h"

#include <sluice/status.h>
#include <stdint.h>

/* Sets this thread's error line and returns `status`: return slc_error(SLUICE_ERR_IO, "%s: %s", path, why). With
 * SLUICE_ERR_MEMORY the line need only name what the memory was for: "no memory: " is put before it. */
sluice_status slc_error(sluice_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The status that came with this thread's error line; OK before the first failure. */
sluice_status slc_last_status(void);

/* These two bracket a call of code that is not ours (a program's optimizer), which may fail without setting a line, or
 * return a number that is no error. slc_errors_set counts the lines that this thread has set so far. slc_error_bare,
 * which gets that count after the call, sets the line "returned mismatch (-8)" for a status that came without one, and
 * returns `status`; if `status` is neither OK nor an error of sluice/status.h, it returns ARGUMENT with a line that
 * says so. */
uint64_t slc_errors_set(void);
sluice_status slc_error_bare(sluice_status status, uint64_t set_before);

/* slc_error_keep puts this thread's error aside before calls whose own errors nobody is to hear of: those that clean up
 * after a failure, or try something that need not succeed. slc_error_restore comes after them and returns `status`. The
 * kept line is the thread's again, as that of `status`, or with SLUICE_OK as that of the status it came with. */
typedef struct slc_kept_error {
    sluice_status status;
    char line[SLC_ERROR_BYTES];
} slc_kept_error;

void slc_error_keep(slc_kept_error *kept);
sluice_status slc_error_restore(const slc_kept_error *kept, sluice_status status);

/* Puts "context: " before this thread's error line; returns `status` unchanged. Does nothing for SLUICE_OK. */
sluice_status slc_error_context(sluice_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));
