/* NCCL's collectives and its send and receive. tests/nccl/on_the_bed.py covers this file. */
#include "plugins/nccl/shim/call.h"
#include "plugins/nccl/shim/transforms.h"

#define SEND_RECEIVE .send = send, .receive = receive
#define NO_REDOP .redop = SLC_RECORD_NO_REDOP

/* nccl##NAME and its twin; the last argument says what of the call is recorded. */
#define OPERATION(NAME, parameters, arguments, ...)                                                                    \
    ncclResult_t nccl##NAME parameters                                                                                 \
    {                                                                                                                  \
        const void *caller = __builtin_return_address(0);                                                              \
        const slc_shim_real *own = slc_shim_call_of_nccl(caller);                                                      \
        if (__builtin_expect(own != NULL, 0)) return own->NAME arguments;                                              \
        slc_shim_call call = {                                                                                         \
            .count = count, .type = type, .comm = comm, .stream = stream, .caller = caller, __VA_ARGS__};              \
        slc_shim_call_begin(&call);                                                                                    \
        const slc_shim_transforms *transforms = call.recorder->transforms;                                             \
        ncclResult_t result;                                                                                           \
        if (__builtin_expect(transforms == NULL, 1) || !transforms->take(&call, &result))                              \
            result = call.real->NAME arguments;                                                                        \
        return slc_shim_call_end(&call, result);                                                                       \
    }                                                                                                                  \
    ncclResult_t pnccl##NAME parameters __attribute__((alias("nccl" #NAME)));

OPERATION(AllReduce,
          (const void *send, void *receive, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
           cudaStream_t stream),
          (send, receive, count, type, op, comm, stream), .operation = SLC_RECORD_ALL_REDUCE, SEND_RECEIVE, .redop = op,
          .peer = -1)

OPERATION(ReduceScatter,
          (const void *send, void *receive, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
           cudaStream_t stream),
          (send, receive, count, type, op, comm, stream), .operation = SLC_RECORD_REDUCE_SCATTER, SEND_RECEIVE,
          .redop = op, .peer = -1)

OPERATION(AllGather,
          (const void *send, void *receive, size_t count, ncclDataType_t type, ncclComm_t comm, cudaStream_t stream),
          (send, receive, count, type, comm, stream), .operation = SLC_RECORD_ALL_GATHER, SEND_RECEIVE, NO_REDOP,
          .peer = -1)

OPERATION(Reduce,
          (const void *send, void *receive, size_t count, ncclDataType_t type, ncclRedOp_t op, int root,
           ncclComm_t comm, cudaStream_t stream),
          (send, receive, count, type, op, root, comm, stream), .operation = SLC_RECORD_REDUCE, SEND_RECEIVE,
          .redop = op, .peer = root)

OPERATION(Bcast, (void *buffer, size_t count, ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream),
          (buffer, count, type, root, comm, stream), .operation = SLC_RECORD_BROADCAST, .send = buffer,
          .receive = buffer, NO_REDOP, .peer = root)

OPERATION(Broadcast,
          (const void *send, void *receive, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
           cudaStream_t stream),
          (send, receive, count, type, root, comm, stream), .operation = SLC_RECORD_BROADCAST, SEND_RECEIVE, NO_REDOP,
          .peer = root)

OPERATION(AlltoAll,
          (const void *send, void *receive, size_t count, ncclDataType_t type, ncclComm_t comm, cudaStream_t stream),
          (send, receive, count, type, comm, stream), .operation = SLC_RECORD_ALL_TO_ALL, SEND_RECEIVE, NO_REDOP,
          .peer = -1)

OPERATION(Gather,
          (const void *send, void *receive, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
           cudaStream_t stream),
          (send, receive, count, type, root, comm, stream), .operation = SLC_RECORD_GATHER, SEND_RECEIVE, NO_REDOP,
          .peer = root)

OPERATION(Scatter,
          (const void *send, void *receive, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
           cudaStream_t stream),
          (send, receive, count, type, root, comm, stream), .operation = SLC_RECORD_SCATTER, SEND_RECEIVE, NO_REDOP,
          .peer = root)

OPERATION(Send, (const void *send, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream),
          (send, count, type, peer, comm, stream), .operation = SLC_RECORD_SEND, .send = send, NO_REDOP, .peer = peer)

OPERATION(Recv, (void *receive, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream),
          (receive, count, type, peer, comm, stream), .operation = SLC_RECORD_RECEIVE, .receive = receive, NO_REDOP,
          .peer = peer)
