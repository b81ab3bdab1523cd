/* A libnccl.so.2 that does nothing but answer, so that the shim's own tests need no other part of the tree: handles are
 * small blocks of memory, collectives return, and echo_calls says how many functions were called from outside. A count
 * of ECHO_REFUSED is refused. As NCCL does, it calls its own public names through the loader's table. */
#include "tests/nccl/programs/shim/echo_nccl.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct ncclComm {
    int rank, size, device;
};

static atomic_long calls;
static _Thread_local int depth;

#define SHOWN __attribute__((visibility("default")))
SHOWN long echo_calls(void)
{
    return calls;
}

static ncclResult_t answer(size_t count)
{
    calls++;
    return count == ECHO_REFUSED ? ncclInvalidArgument : ncclSuccess;
}

static ncclResult_t make(ncclComm_t *out, int rank, int size, int device)
{
    calls++;
    if (!out || rank < 0 || rank >= size) return ncclInvalidArgument;
    *out = malloc(sizeof **out);
    **out = (struct ncclComm){rank, size, device};
    return ncclSuccess;
}

ncclResult_t ncclGetVersion(int *version)
{
    calls++;
    *version = ECHO_VERSION;
    return ncclSuccess;
}
ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
    calls++;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    memset(id, 0, sizeof *id);
    memcpy(id->internal, &now, sizeof now);
    return ncclSuccess;
}
slc_nccl_text ncclGetErrorString(ncclResult_t result)
{
    return result ? "the echo says no" : "the echo says yes";
}
ncclResult_t ncclCommInitRank(ncclComm_t *comm, int nranks, ncclUniqueId id, int rank)
{
    (void)id;
    return make(comm, rank, nranks, 0);
}
ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int nranks, ncclUniqueId id, int rank, ncclConfig_t *config)
{
    (void)id;
    ncclResult_t result = make(comm, rank, nranks, 0);
    return !result && config && config->blocking == 0 ? ncclInProgress : result;
}
ncclResult_t ncclCommInitAll(ncclComm_t *comms, int count, const int *devices)
{
    ncclUniqueId id;
    ncclGetUniqueId(&id);
    for (int i = 0; i < count; i++) {
        ncclResult_t result = make(&comms[i], i, count, devices ? devices[i] : i);
        if (result) return result;
    }
    return ncclSuccess;
}
ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *out, ncclConfig_t *config)
{
    (void)key, (void)config;
    calls++;
    *out = NULL;
    return color == NCCL_SPLIT_NOCOLOR ? ncclSuccess : make(out, 0, 1, comm->device);
}
ncclResult_t ncclCommCount(const ncclComm_t comm, int *count)
{
    *count = comm->size;
    return ncclSuccess;
}
ncclResult_t ncclCommUserRank(const ncclComm_t comm, int *rank)
{
    *rank = comm->rank;
    return ncclSuccess;
}
ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int *device)
{
    *device = comm->device;
    return ncclSuccess;
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error)
{
    (void)comm;
    calls++;
    *error = ncclSuccess;
    return ncclSuccess;
}
ncclResult_t ncclCommFinalize(ncclComm_t comm)
{
    (void)comm;
    return answer(0);
}
ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
    free(comm);
    return answer(0);
}
ncclResult_t ncclCommAbort(ncclComm_t comm)
{
    free(comm);
    return answer(0);
}
ncclResult_t ncclAllReduce(const void *send, void *receive, size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream)
{
    (void)send, (void)receive, (void)type, (void)op, (void)comm, (void)stream;
    return answer(count);
}
ncclResult_t ncclBroadcast(const void *send, void *receive, size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream)
{
    (void)send, (void)receive, (void)type, (void)root, (void)comm, (void)stream;
    return answer(count);
}
ncclResult_t ncclBcast(void *buffer, size_t count, ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream)
{
    return ncclBroadcast(buffer, buffer, count, type, root, comm, stream);
}
ncclResult_t ncclSend(const void *send, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream)
{
    (void)send, (void)type, (void)peer, (void)comm, (void)stream;
    return answer(count);
}
ncclResult_t ncclRecv(void *receive, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream)
{
    (void)receive, (void)type, (void)peer, (void)comm, (void)stream;
    return answer(count);
}
ncclResult_t ncclGroupStart(void)
{
    calls++;
    depth++;
    return ncclSuccess;
}
ncclResult_t ncclGroupEnd(void)
{
    calls++;
    if (!depth) return ncclInvalidUsage;
    depth--;
    return ncclSuccess;
}
