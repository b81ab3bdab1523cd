/* The collectives, sends and receives as a program calls them: their arguments are looked at, then the group has them.
 */
#include "tests/nccl/bed/hostnccl/comm.h"

/* True if this rank gives a send buffer; needs_receive is true if it gives a receive buffer. */
static bool needs_send(const hostnccl_operation *o)
{
    bool root_only = o->kind == HOSTNCCL_BROADCAST || o->kind == HOSTNCCL_SCATTER;
    return o->kind != HOSTNCCL_RECEIVE && (!root_only || o->comm->rank == o->root);
}

static bool needs_receive(const hostnccl_operation *o)
{
    bool root_only = o->kind == HOSTNCCL_REDUCE || o->kind == HOSTNCCL_GATHER;
    return o->kind != HOSTNCCL_SEND && (!root_only || o->comm->rank == o->root);
}

/* The operator's scalar is copied, because the program may destroy the operator as soon as the call has returned. */
static ncclResult_t resolve_redop(hostnccl_operation *o, const char *function)
{
    if (o->op >= ncclSum && o->op < ncclNumOps) return ncclSuccess;
    int index = (int)o->op - ncclNumOps;
    if (index < 0 || index >= o->comm->redop_count || !o->comm->redops[index].used)
        return hostnccl_error(ncclInvalidArgument, "%s : invalid reduction operation %d", function, (int)o->op);
    const hostnccl_redop *redop = &o->comm->redops[index];
    if (redop->type != o->type)
        return hostnccl_error(ncclInvalidArgument,
                              "%s : Data type supplied to user-created ncclRedOp_t does not match type given to "
                              "reduction operation",
                              function);
    o->op = ncclNumOps;
    o->scalar = redop->scalar;
    o->device_scalar = redop->device_scalar;
    return ncclSuccess;
}

static ncclResult_t check_operation(hostnccl_operation *o, const char *function)
{
    ncclResult_t result = hostnccl_comm_usable(o->comm, function);
    if (result) return result;
    if (o->type < 0 || o->type >= ncclNumTypes)
        return hostnccl_error(ncclInvalidArgument, "%s : invalid type %d", function, (int)o->type);
    result = resolve_redop(o, function);
    if (result) return result;
    bool rooted = o->kind == HOSTNCCL_REDUCE || o->kind == HOSTNCCL_BROADCAST || o->kind >= HOSTNCCL_GATHER;
    if (rooted && (o->root < 0 || o->root >= o->comm->size))
        return hostnccl_error(ncclInvalidArgument, "%s : invalid root %d (root should be in the 0..%d range)", function,
                              o->root, o->comm->size - 1);
    if (o->count > (size_t)PTRDIFF_MAX / hostnccl_type_bytes(o->type) / (size_t)o->comm->size)
        return hostnccl_error(ncclInvalidArgument, "%s : invalid count %zu", function, o->count);
    if (o->count && ((needs_send(o) && !o->send) || (needs_receive(o) && !o->receive)))
        return hostnccl_error(ncclInvalidArgument, "%s : %s argument is NULL", function,
                              needs_send(o) && !o->send ? "sendbuff" : "recvbuff");
    return ncclSuccess;
}

/* A collective of nothing is nothing; a message of nothing still waits for its other side. */
static ncclResult_t submit(const char *function, hostnccl_operation o)
{
    hostnccl_group_begin();
    ncclResult_t result = check_operation(&o, function);
    if (!result && (o.count || o.kind >= HOSTNCCL_SEND)) result = hostnccl_group_add_operation(&o);
    hostnccl_group_failed(result);
    ncclResult_t ended = hostnccl_group_finish();
    return result ? result : ended;
}

#define OPERATION(kind_, send_, receive_, op_, root_)                                                                  \
    (hostnccl_operation)                                                                                               \
    {                                                                                                                  \
        .kind = kind_, .send = send_, .receive = receive_, .count = count, .type = type, .op = op_, .root = root_,     \
        .comm = comm, .stream = stream                                                                                 \
    }

ncclResult_t ncclAllReduce(const void *send, void *receive, size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream)
{
    return submit("AllReduce", OPERATION(HOSTNCCL_ALL_REDUCE, send, receive, op, -1));
}
HOSTNCCL_EXPORT(ncclAllReduce);

ncclResult_t ncclReduceScatter(const void *send, void *receive, size_t count, ncclDataType_t type, ncclRedOp_t op,
                               ncclComm_t comm, cudaStream_t stream)
{
    return submit("ReduceScatter", OPERATION(HOSTNCCL_REDUCE_SCATTER, send, receive, op, -1));
}
HOSTNCCL_EXPORT(ncclReduceScatter);

ncclResult_t ncclAllGather(const void *send, void *receive, size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream)
{
    return submit("AllGather", OPERATION(HOSTNCCL_ALL_GATHER, send, receive, ncclSum, -1));
}
HOSTNCCL_EXPORT(ncclAllGather);

ncclResult_t ncclReduce(const void *send, void *receive, size_t count, ncclDataType_t type, ncclRedOp_t op, int root,
                        ncclComm_t comm, cudaStream_t stream)
{
    return submit("Reduce", OPERATION(HOSTNCCL_REDUCE, send, receive, op, root));
}
HOSTNCCL_EXPORT(ncclReduce);

ncclResult_t ncclBroadcast(const void *send, void *receive, size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream)
{
    return submit("Broadcast", OPERATION(HOSTNCCL_BROADCAST, send, receive, ncclSum, root));
}
HOSTNCCL_EXPORT(ncclBroadcast);

ncclResult_t ncclBcast(void *buffer, size_t count, ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream)
{
    return ncclBroadcast(buffer, buffer, count, type, root, comm, stream);
}
HOSTNCCL_EXPORT(ncclBcast);

ncclResult_t ncclAlltoAll(const void *send, void *receive, size_t count, ncclDataType_t type, ncclComm_t comm,
                          cudaStream_t stream)
{
    return submit("AlltoAll", OPERATION(HOSTNCCL_ALL_TO_ALL, send, receive, ncclSum, -1));
}
HOSTNCCL_EXPORT(ncclAlltoAll);

ncclResult_t ncclGather(const void *send, void *receive, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                        cudaStream_t stream)
{
    return submit("Gather", OPERATION(HOSTNCCL_GATHER, send, receive, ncclSum, root));
}
HOSTNCCL_EXPORT(ncclGather);

ncclResult_t ncclScatter(const void *send, void *receive, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                         cudaStream_t stream)
{
    return submit("Scatter", OPERATION(HOSTNCCL_SCATTER, send, receive, ncclSum, root));
}
HOSTNCCL_EXPORT(ncclScatter);

ncclResult_t ncclSend(const void *send, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream)
{
    return submit("Send", OPERATION(HOSTNCCL_SEND, send, NULL, ncclSum, peer));
}
HOSTNCCL_EXPORT(ncclSend);

ncclResult_t ncclRecv(void *receive, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream)
{
    return submit("Recv", OPERATION(HOSTNCCL_RECEIVE, NULL, receive, ncclSum, peer));
}
HOSTNCCL_EXPORT(ncclRecv);
