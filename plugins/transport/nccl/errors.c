/* Errors, as lines for the host. tests/nccl/transport/nccl_library_test.c covers this file. */
#include "state.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

sluice_status nccl_refuse(const nccl_transport *self, sluice_status status, const char *format, ...)
{
    char line[1600] = "nccl: ";
    const size_t begin = strlen(line);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line + begin, sizeof line - begin, format, arguments);
    va_end(arguments);
    return self->host->error(self->host->context, status, line);
}

sluice_status nccl_failed(const nccl_transport *self, const char *call, ncclResult_t result)
{
    const char *last = self->library.GetLastError(NULL);
    return nccl_refuse(self, result == ncclRemoteError ? SLUICE_ERR_PEER : SLUICE_ERR_SYSTEM,
                       "%s: %s; NCCL's last error: %s", call, self->library.GetErrorString(result),
                       last && *last ? last : "none");
}
