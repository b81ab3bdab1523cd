/* Versions and questions. */
#include "tests/nccl/bed/hostnccl/comm.h"

#include <string.h>

ncclResult_t ncclGetVersion(int *version)
{
    if (!version) return hostnccl_error(ncclInvalidArgument, "GetVersion : version argument is NULL");
    *version = NCCL_VERSION_CODE;
    return ncclSuccess;
}
HOSTNCCL_EXPORT(ncclGetVersion);

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
