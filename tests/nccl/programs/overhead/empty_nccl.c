/* An NCCL whose functions do nothing, so that what is measured is the way to them. */
#include "plugins/nccl/nccl_abi.h"

#include <stdlib.h>

ncclResult_t ncclGetVersion(int *version)
{
    *version = NCCL_VERSION_CODE;
    return ncclSuccess;
}
ncclResult_t ncclCommInitRank(ncclComm_t *comm, int nranks, ncclUniqueId id, int rank)
{
    (void)nranks, (void)id, (void)rank;
    *comm = malloc(1);
    return *comm ? ncclSuccess : ncclSystemError;
}
ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
    free(comm);
    return ncclSuccess;
}
ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int *device)
{
    (void)comm;
    *device = 0;
    return ncclSuccess;
}
ncclResult_t ncclAllReduce(const void *send, void *receive, size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream)
{
    (void)send, (void)receive, (void)count, (void)type, (void)op, (void)comm, (void)stream;
    return ncclSuccess;
}
ncclResult_t ncclSend(const void *send, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream)
{
    (void)send, (void)count, (void)type, (void)peer, (void)comm, (void)stream;
    return ncclSuccess;
}
ncclResult_t ncclGroupStart(void)
{
    return ncclSuccess;
}
ncclResult_t ncclGroupEnd(void)
{
    return ncclSuccess;
}
