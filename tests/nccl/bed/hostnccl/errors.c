/* Keeps each thread's last error, and says it as NCCL does. */
#include "tests/nccl/bed/hostnccl/errors.h"

#include "tests/nccl/bed/hostnccl/export.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Thread_local char last_error[1024];

ncclResult_t hostnccl_error(ncclResult_t result, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(last_error, sizeof last_error, format, arguments);
    va_end(arguments);
    const char *debug = getenv("NCCL_DEBUG");
    if (debug && strcmp(debug, "VERSION") != 0 && strcmp(debug, "NONE") != 0)
        fprintf(stderr, "hostnccl: %s: %s\n", last_error, ncclGetErrorString(result));
    return result;
}

ncclResult_t hostnccl_cuda_failed(const char *call, cudaError_t error)
{
    return hostnccl_error(ncclUnhandledCudaError, "Cuda failure %d '%s' (%s)", error, cudaGetErrorString(error), call);
}

const char *ncclGetErrorString(ncclResult_t result)
{
    switch (result) {
    case ncclSuccess: return "no error";
    case ncclUnhandledCudaError: return "unhandled cuda error (run with NCCL_DEBUG=INFO for details)";
    case ncclSystemError: return "unhandled system error (run with NCCL_DEBUG=INFO for details)";
    case ncclInternalError: return "internal error - please report this issue to the NCCL developers";
    case ncclInvalidArgument: return "invalid argument (run with NCCL_DEBUG=WARN for details)";
    case ncclInvalidUsage: return "invalid usage (run with NCCL_DEBUG=WARN for details)";
    case ncclRemoteError: return "remote process exited or there was a network error";
    case ncclInProgress: return "NCCL operation in progress";
    default: return "unknown result code";
    }
}
HOSTNCCL_EXPORT(ncclGetErrorString);

const char *ncclGetLastError(ncclComm_t comm)
{
    (void)comm;
    return last_error;
}
HOSTNCCL_EXPORT(ncclGetLastError);

void ncclResetDebugInitInternal(void)
{
}

void ncclResetDebugInit(void)
{
    ncclResetDebugInitInternal();
}
HOSTNCCL_EXPORT(ncclResetDebugInit);
