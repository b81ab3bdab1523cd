/* A group's calls are kept and made all at once at its end, so that NCCL never has a group open between two of our
 * slots: an abort by another thread may then come at any time, and a call that is wrong leaves NCCL untouched.
 * tests/nccl/transport/nccl_transport_test.c covers this file. */
#include "groups.h"

#include "communicator.h"

#include <stdio.h>
#include <stdlib.h>

enum { FIRST_ROOM = 64 };

static const char *kind_name(nccl_call_kind kind)
{
    static const char *const names[] = {"reduce_scatter", "all_gather", "all_reduce", "broadcast", "send", "receive"};
    return names[kind];
}

static bool translate_type(sluice_dtype dtype, ncclDataType_t *out)
{
    switch (dtype) {
    case SLUICE_FP32: *out = ncclFloat32; return true;
    case SLUICE_BF16: *out = ncclBfloat16; return true;
    case SLUICE_FP64: *out = ncclFloat64; return true;
    case SLUICE_INT64: *out = ncclInt64; return true;
    case SLUICE_UINT8: *out = ncclUint8; return true;
    }
    return false;
}

/* Returns the reason why a call cannot be made; NULL: it can. */
static const char *find_fault(const nccl_transport *self, const nccl_call *call, sluice_dtype dtype)
{
    const bool sum = call->kind == REDUCE_SCATTER || call->kind == ALL_REDUCE;
    const bool message = call->kind == SEND || call->kind == RECEIVE;
    if (sum && dtype == SLUICE_UINT8) return "sums are of fp32, bf16, int64 or fp64";
    if (!call->count) return "a count of 0";
    if ((call->kind != RECEIVE && !call->send) || (call->kind != SEND && !call->receive)) return "a buffer is NULL";
    if ((message || call->kind == BROADCAST) && (call->rank < 0 || call->rank >= self->host->world_size))
        return "no such rank";
    if (message && call->rank == self->host->rank) return "a message to the own rank";
    return NULL;
}

/* Makes room for one more call of the group. On failure the caller tells the host. */
static sluice_status make_room(nccl_transport *self)
{
    if (self->call_count < self->call_room) return SLUICE_OK;
    size_t room = self->call_room ? 2 * self->call_room : FIRST_ROOM;
    nccl_call *calls = realloc(self->calls, room * sizeof *calls);
    if (!calls) return SLUICE_ERR_MEMORY;
    self->calls = calls;
    self->call_room = room;
    return SLUICE_OK;
}

/* Keeps a call for the end of the group. The first one that is refused decides what group_end says. */
static sluice_status add_call(nccl_transport *self, nccl_call call, sluice_dtype dtype)
{
    const char *name = kind_name(call.kind);
    if (!self->in_group) return nccl_refuse(self, SLUICE_ERR_ORDER, "%s: outside of a group", name);
    const char *fault = translate_type(dtype, &call.type) ? find_fault(self, &call, dtype) : "no such type";
    sluice_status status = fault ? SLUICE_ERR_ARGUMENT : make_room(self);
    if (!status) {
        self->calls[self->call_count++] = call;
        return SLUICE_OK;
    }
    if (!fault) fault = "no memory for the group";
    if (!self->refused) {
        self->refused = status;
        snprintf(self->refusal, sizeof self->refusal, "%s: %s", name, fault);
    }
    return nccl_refuse(self, status, "%s: %s", name, fault);
}

sluice_status nccl_reduce_scatter(void *self, const void *send, void *receive, size_t count, sluice_dtype dtype)
{
    return add_call(self, (nccl_call){.kind = REDUCE_SCATTER, .send = send, .receive = receive, .count = count}, dtype);
}

sluice_status nccl_all_gather(void *self, const void *send, void *receive, size_t count, sluice_dtype dtype)
{
    return add_call(self, (nccl_call){.kind = ALL_GATHER, .send = send, .receive = receive, .count = count}, dtype);
}

sluice_status nccl_all_reduce(void *self, const void *send, void *receive, size_t count, sluice_dtype dtype)
{
    return add_call(self, (nccl_call){.kind = ALL_REDUCE, .send = send, .receive = receive, .count = count}, dtype);
}

sluice_status nccl_broadcast(void *self, void *buffer, size_t count, sluice_dtype dtype, int root)
{
    const nccl_call call = {.kind = BROADCAST, .send = buffer, .receive = buffer, .count = count, .rank = root};
    return add_call(self, call, dtype);
}

sluice_status nccl_send(void *self, int rank, const void *data, size_t count, sluice_dtype dtype)
{
    return add_call(self, (nccl_call){.kind = SEND, .send = data, .count = count, .rank = rank}, dtype);
}

sluice_status nccl_receive(void *self, int rank, void *data, size_t count, sluice_dtype dtype)
{
    return add_call(self, (nccl_call){.kind = RECEIVE, .receive = data, .count = count, .rank = rank}, dtype);
}

sluice_status nccl_group_begin(void *argument)
{
    nccl_transport *self = argument;
    sluice_status status = nccl_usable(self, "group_begin");
    if (status) return status;
    if (self->in_group) return nccl_refuse(self, SLUICE_ERR_ORDER, "group_begin: the group before has not ended");
    if (atomic_load(&self->launching))
        return nccl_refuse(self, SLUICE_ERR_ORDER, "group_begin: the group before is not launched yet");
    self->in_group = true;
    self->refused = SLUICE_OK;
    self->call_count = 0;
    return SLUICE_OK;
}

static ncclResult_t make_call(const nccl_transport *self, const nccl_call *call, ncclComm_t comm)
{
    const nccl_library *nccl = &self->library;
    void *stream = atomic_load(&self->stream);
    switch (call->kind) {
    case REDUCE_SCATTER:
        return nccl->ReduceScatter(call->send, call->receive, call->count, call->type, ncclSum, comm, stream);
    case ALL_GATHER: return nccl->AllGather(call->send, call->receive, call->count, call->type, comm, stream);
    case ALL_REDUCE: return nccl->AllReduce(call->send, call->receive, call->count, call->type, ncclSum, comm, stream);
    case BROADCAST:
        return nccl->Broadcast(call->send, call->receive, call->count, call->type, call->rank, comm, stream);
    case SEND: return nccl->Send(call->send, call->count, call->type, call->rank, comm, stream);
    case RECEIVE: return nccl->Recv(call->receive, call->count, call->type, call->rank, comm, stream);
    }
    return ncclInvalidArgument;
}

/* Makes the calls. *what: the one that failed. A group that has begun is ended whatever happened. */
static ncclResult_t make_calls(nccl_transport *self, ncclComm_t comm, const char **what)
{
    *what = "ncclGroupStart";
    ncclResult_t result = self->library.GroupStart();
    if (result) return result;
    for (size_t i = 0; i < self->call_count && (!result || result == ncclInProgress); i++) {
        *what = kind_name(self->calls[i].kind);
        result = make_call(self, &self->calls[i], comm);
    }
    ncclResult_t ended = self->library.GroupEnd();
    if (result && result != ncclInProgress) return result;
    *what = "ncclGroupEnd";
    return ended;
}

sluice_status nccl_group_end(void *argument)
{
    nccl_transport *self = argument;
    if (!self->in_group) return nccl_refuse(self, SLUICE_ERR_ORDER, "group_end: no group has begun");
    self->in_group = false;
    sluice_status status = nccl_usable(self, "group_end");
    if (status) return status;
    if (self->refused) return nccl_refuse(self, self->refused, "%s", self->refusal);
    if (!self->call_count) return SLUICE_OK;

    const char *what = "";
    nccl_enter(self);
    ncclComm_t comm = atomic_load(&self->comm); /* NULL: an abort came after the check above */
    ncclResult_t result = comm ? make_calls(self, comm, &what) : ncclSuccess;
    if (result == ncclInProgress) atomic_store(&self->launching, true);
    nccl_leave(self);
    status = nccl_usable(self, "group_end");
    if (status) return status;
    if (result == ncclInProgress) return SLUICE_IN_PROGRESS;
    return result ? nccl_failed(self, what, result) : SLUICE_OK;
}
