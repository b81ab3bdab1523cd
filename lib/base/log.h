/* Log lines on standard error, one for each message: "sluice[RANK] LEVEL message". SLUICE_LOG_LEVEL (error, warn, info,
 * debug; default warn) sets the level. Any thread. */
#pragma once

typedef enum { SLC_LOG_ERROR, SLC_LOG_WARN, SLC_LOG_INFO, SLC_LOG_DEBUG } slc_log_level;

void slc_log(slc_log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));
void slc_log_rank(int rank); /* every later line of this process shows it */
