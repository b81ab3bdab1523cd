/* A library that stands for NCCL and answers what the environment tells it to, while the small NCCL answers what is
 * true: SCRIPT_VERSION, SCRIPT_INIT, SCRIPT_CALL and SCRIPT_GROUP_END what those calls return, SCRIPT_STATE a
 * communicator's state, SCRIPT_WORDS the last error, SCRIPT_CONF what NCCL_COMM_BLOCKING is in NCCL's file nccl.conf.
 * Built with PARTIAL it lacks a function. */
#include "plugins/nccl/nccl_abi.h"
#include "tests/nccl/transport/scripted_nccl.h"

#include <stdlib.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT script_counts script_counted;

static int script_number(const char *name)
{
    const char *text = getenv(name);
    return text ? atoi(text) : 0;
}

ncclResult_t ncclGetVersion(int *version)
{
    *version = script_number("SCRIPT_VERSION");
    return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t result)
{
    (void)result;
    return "what the script says";
}

const char *ncclGetLastError(ncclComm_t comm)
{
    (void)comm;
    return getenv("SCRIPT_WORDS");
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
    *id = (ncclUniqueId){{0}};
    return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int nranks, ncclUniqueId id, int rank, ncclConfig_t *config)
{
    static char made;
    (void)nranks, (void)id, (void)rank;
    script_counted.blocking = config->blocking;
    if (getenv("SCRIPT_CONF")) setenv("NCCL_COMM_BLOCKING", getenv("SCRIPT_CONF"), 0);
    *comm = (ncclComm_t)(void *)&made;
    return (ncclResult_t)script_number("SCRIPT_INIT");
}

ncclResult_t ncclCommFinalize(ncclComm_t comm)
{
    (void)comm;
    script_counted.finalized++;
    return ncclInProgress;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
    (void)comm;
    script_counted.destroyed++;
    return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm)
{
    (void)comm;
    script_counted.aborted++;
    return ncclSuccess;
}

#ifndef PARTIAL
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *state)
{
    (void)comm;
    *state = (ncclResult_t)script_number("SCRIPT_STATE");
    return ncclSuccess;
}
#endif

ncclResult_t ncclGroupStart(void)
{
    script_counted.groups_begun++;
    return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void)
{
    script_counted.groups_ended++;
    return (ncclResult_t)script_number("SCRIPT_GROUP_END");
}

ncclResult_t ncclAllReduce(const void *send, void *receive, size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream)
{
    (void)send, (void)receive, (void)count, (void)type, (void)op, (void)comm, (void)stream;
    script_counted.calls++;
    return (ncclResult_t)script_number("SCRIPT_CALL");
}

/* No test calls these functions here. */
ncclResult_t ncclReduceScatter(const void *send, void *receive, size_t count, ncclDataType_t type, ncclRedOp_t op,
                               ncclComm_t comm, cudaStream_t stream)
{
    return ncclAllReduce(send, receive, count, type, op, comm, stream);
}

ncclResult_t ncclAllGather(const void *send, void *receive, size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream)
{
    return ncclAllReduce(send, receive, count, type, ncclSum, comm, stream);
}

ncclResult_t ncclBroadcast(const void *send, void *receive, size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream)
{
    (void)root;
    return ncclAllReduce(send, receive, count, type, ncclSum, comm, stream);
}

ncclResult_t ncclSend(const void *send, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream)
{
    (void)peer;
    return ncclAllReduce(send, NULL, count, type, ncclSum, comm, stream);
}

ncclResult_t ncclRecv(void *receive, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream)
{
    (void)peer;
    return ncclAllReduce(NULL, receive, count, type, ncclSum, comm, stream);
}
