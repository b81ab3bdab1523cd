/* The error line of each thread. */
#include "lib/base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char error_line[SLC_ERROR_BYTES];
static _Thread_local sluice_status error_status;
static _Thread_local uint64_t errors_set;

const char *sluice_last_error(void)
{
    return error_line;
}

sluice_status slc_last_status(void)
{
    return error_status;
}

const char *sluice_status_name(sluice_status status)
{
    switch (status) {
    case SLUICE_OK: return "ok";
    case SLUICE_IN_PROGRESS: return "in progress";
    case SLUICE_ERR_ARGUMENT: return "argument";
    case SLUICE_ERR_MEMORY: return "memory";
    case SLUICE_ERR_BUDGET: return "budget";
    case SLUICE_ERR_IO: return "io";
    case SLUICE_ERR_FORMAT: return "format";
    case SLUICE_ERR_PEER: return "peer";
    case SLUICE_ERR_TIMEOUT: return "timeout";
    case SLUICE_ERR_MISMATCH: return "mismatch";
    case SLUICE_ERR_ORDER: return "order";
    case SLUICE_ERR_NON_FINITE: return "non-finite";
    case SLUICE_ERR_UNSUPPORTED: return "unsupported";
    case SLUICE_ERR_SYSTEM: return "system";
    case SLUICE_ERR_INTERRUPTED: return "interrupted";
    case SLUICE_ERR_PATH: return "path";
    }
    return "unknown";
}

sluice_status slc_error(sluice_status status, const char *format, ...)
{
    char line[SLC_ERROR_BYTES]; /* a copy, because arguments may point into error_line */
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    static const char prefix[] = "no memory: ";
    size_t room = status == SLUICE_ERR_MEMORY && !strstr(line, "memory") ? sizeof prefix - 1 : 0;
    memcpy(error_line, prefix, room);
    memcpy(error_line + room, line, SLC_ERROR_BYTES - room);
    error_line[SLC_ERROR_BYTES - 1] = 0;
    if (status) error_status = status;
    errors_set++;
    return status;
}

uint64_t slc_errors_set(void)
{
    return errors_set;
}

sluice_status slc_error_bare(sluice_status status, uint64_t set_before)
{
    if (!status) return status;
    if (status > 0 || !strcmp(sluice_status_name(status), "unknown"))
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "returned %d, which is no status; return SLUICE_OK or a SLUICE_ERR_ of sluice/status.h",
                         (int)status);
    if (errors_set != set_before) return status;
    return slc_error(status, "returned %s (%d)", sluice_status_name(status), (int)status);
}

void slc_error_keep(slc_kept_error *kept)
{
    kept->status = error_status;
    memcpy(kept->line, error_line, SLC_ERROR_BYTES);
}

sluice_status slc_error_restore(const slc_kept_error *kept, sluice_status status)
{
    error_status = status ? status : kept->status;
    memcpy(error_line, kept->line, SLC_ERROR_BYTES);
    return status;
}

sluice_status slc_error_context(sluice_status status, const char *format, ...)
{
    if (status >= 0) return status;
    char line[2 * SLC_ERROR_BYTES]; /* room for both halves; a line that is too long loses its end */
    va_list args;
    va_start(args, format);
    int length = vsnprintf(line, SLC_ERROR_BYTES, format, args);
    va_end(args);
    if (length > SLC_ERROR_BYTES - 1) length = SLC_ERROR_BYTES - 1;
    if (length > 0) snprintf(line + length, sizeof line - (size_t)length, ": %s", error_line);
    line[SLC_ERROR_BYTES - 1] = 0;
    if (length > 0) memcpy(error_line, line, SLC_ERROR_BYTES);
    return status;
}
