/* NCCL's collectives and its send and receive. tests/nccl/on_the_bed.py covers this file. */
#include "plugins/nccl/shim/call.h"
#include "plugins/nccl/shim/transforms.h"

#define BOTH .send = send, .receive = receive
#define NO_REDOP .redop = SLC_RECORD_NO_REDOP

/* The fields of a record that a call of each function fills. */
#define OF_AllReduce .operation = SLC_RECORD_ALL_REDUCE, BOTH, .redop = op, .peer = -1
#define OF_ReduceScatter .operation = SLC_RECORD_REDUCE_SCATTER, BOTH, .redop = op, .peer = -1
#define OF_AllGather .operation = SLC_RECORD_ALL_GATHER, BOTH, NO_REDOP, .peer = -1
#define OF_Reduce .operation = SLC_RECORD_REDUCE, BOTH, .redop = op, .peer = root
#define OF_Bcast .operation = SLC_RECORD_BROADCAST, .send = buffer, .receive = buffer, NO_REDOP, .peer = root
#define OF_Broadcast .operation = SLC_RECORD_BROADCAST, BOTH, NO_REDOP, .peer = root
#define OF_AlltoAll .operation = SLC_RECORD_ALL_TO_ALL, BOTH, NO_REDOP, .peer = -1
#define OF_Gather .operation = SLC_RECORD_GATHER, BOTH, NO_REDOP, .peer = root
#define OF_Scatter .operation = SLC_RECORD_SCATTER, BOTH, NO_REDOP, .peer = root
#define OF_Send .operation = SLC_RECORD_SEND, .send = send, NO_REDOP, .peer = peer
#define OF_Recv .operation = SLC_RECORD_RECEIVE, .receive = receive, NO_REDOP, .peer = peer

#define OPERATION(result_type, NAME, parameters, arguments)                                                            \
    result_type nccl##NAME parameters                                                                                  \
    {                                                                                                                  \
        const void *caller = __builtin_return_address(0);                                                              \
        const slc_shim_real *own = slc_shim_call_of_nccl(caller);                                                      \
        if (__builtin_expect(own != NULL, 0)) return own->NAME arguments;                                              \
        slc_shim_call call = {                                                                                         \
            .count = count, .type = type, .comm = comm, .stream = stream, .caller = caller, OF_##NAME};                \
        slc_shim_call_begin(&call);                                                                                    \
        const slc_shim_transforms *transforms = call.recorder->transforms;                                             \
        ncclResult_t result;                                                                                           \
        if (__builtin_expect(transforms == NULL, 1) || !transforms->take(&call, &result))                              \
            result = call.real->NAME arguments;                                                                        \
        return slc_shim_call_end(&call, result);                                                                       \
    }                                                                                                                  \
    SLC_SHIM_TWIN(NAME);
SLC_NCCL_OPERATIONS(OPERATION)
