/* Versions, errors and questions. */
#include "tests/hostnccl/comm.h"

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

ncclResult_t hostnccl_comm_check(ncclComm_t comm, const char *function)
{
    if (!comm) return hostnccl_error(ncclInvalidArgument, "%s : comm argument is NULL", function);
    if (comm->magic != HOSTNCCL_MAGIC)
        return hostnccl_error(ncclInvalidArgument, "Error: corrupted comm object detected (%s)", function);
    return ncclSuccess;
}

ncclResult_t hostnccl_comm_usable(ncclComm_t comm, const char *function)
{
    ncclResult_t result = hostnccl_comm_check(comm, function);
    if (result) return result;
    bool launching = hostnccl_comm_launching(comm);
    if (launching || !atomic_load(&comm->ready)) {
        ncclResult_t state = hostnccl_comm_state(comm);
        if (state && state != ncclInProgress) return state;
        if (launching || !atomic_load(&comm->ready))
            return hostnccl_error(ncclInvalidArgument,
                                  "%s : Attempt to use communicator before the previous operation returned ncclSuccess",
                                  function);
    }
    const char *why = atomic_load(&comm->revoked)     ? "was revoked"
                      : atomic_load(&comm->finalized) ? "was finalized"
                      : atomic_load(&comm->stopped)   ? "had its operations aborted"
                                                      : NULL;
    if (why) return hostnccl_error(ncclInvalidUsage, "%s : the communicator %s", function, why);
    return ncclSuccess;
}

ncclResult_t ncclGetVersion(int *version)
{
    if (!version) return hostnccl_error(ncclInvalidArgument, "GetVersion : version argument is NULL");
    *version = NCCL_VERSION_CODE;
    return ncclSuccess;
}
HOSTNCCL_EXPORT(ncclGetVersion);

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

ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
    if (!id) return hostnccl_error(ncclInvalidArgument, "GetUniqueId : out argument is NULL");
    memset(id, 0, sizeof *id);
    return hostnccl_name_make(id->internal);
}
HOSTNCCL_EXPORT(ncclGetUniqueId);

static ncclResult_t answer(ncclComm_t comm, const char *function, const int *out)
{
    ncclResult_t result = hostnccl_comm_check(comm, function);
    if (!result && !out) result = hostnccl_error(ncclInvalidArgument, "%s : a NULL argument", function);
    if (!result && !atomic_load(&comm->ready) && hostnccl_comm_state(comm))
        result = hostnccl_error(ncclInvalidArgument, "%s : the communicator is not ready", function);
    return result;
}

ncclResult_t ncclCommCount(const ncclComm_t comm, int *count)
{
    ncclResult_t result = answer(comm, "CommCount", count);
    if (!result) *count = comm->size;
    return result;
}
HOSTNCCL_EXPORT(ncclCommCount);

ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int *device)
{
    ncclResult_t result = answer(comm, "CommCuDevice", device);
    if (!result) *device = comm->device;
    return result;
}
HOSTNCCL_EXPORT(ncclCommCuDevice);

ncclResult_t ncclCommUserRank(const ncclComm_t comm, int *rank)
{
    ncclResult_t result = answer(comm, "CommUserRank", rank);
    if (!result) *rank = comm->rank;
    return result;
}
HOSTNCCL_EXPORT(ncclCommUserRank);
