/* Records how communicators begin and end: each gets a row of the record, with a key that all of its ranks find by
 * themselves. shim_test.c covers this file. */
#include "plugins/nccl/shim/communicators.h"
#include "plugins/nccl/shim/groups.h"
#include "plugins/nccl/shim/measure/measure.h"
#include "plugins/nccl/shim/recorder.h"
#include "plugins/nccl/shim/transforms.h"

#include "lib/base/hash/fnv.h"

#include <stdlib.h>
#include <string.h>

#define NCCL_OWN_CALL(call)                                                                                            \
    do {                                                                                                               \
        const slc_shim_real *own = slc_shim_call_of_nccl(__builtin_return_address(0));                                 \
        if (own) return own->call;                                                                                     \
    } while (0)

/* ---- Beginnings ---- */

/* A program may know fewer members of the configuration than this version has. */
#define KNOWS(config, member) ((config) && (config)->size >= offsetof(ncclConfig_t, member) + sizeof(config)->member)

static void take_config(slc_shim_comm *made, const ncclConfig_t *config, const slc_shim_comm *parent)
{
    const char *text = getenv("NCCL_COMM_BLOCKING");
    made->nonblocking = parent && parent->nonblocking;
    made->shares = parent && parent->shares;
    if (KNOWS(config, blocking) && config->blocking != NCCL_CONFIG_UNDEF_INT) made->nonblocking = !config->blocking;
    if (text && (!strcmp(text, "0") || !strcmp(text, "1"))) made->nonblocking = *text == '0';
    if (KNOWS(config, splitShare) && config->splitShare == 1) made->shares = true;
    if (KNOWS(config, shrinkShare) && config->shrinkShare == 1) made->shares = true;
    made->row->nonblocking = made->nonblocking;
}

/* Writes the entry of a row's creation. NULL without memory: then the communicator is not recorded. */
static slc_shim_comm *begin_init(slc_shim_call *call, uint64_t key, int rank, int size, ncclComm_t *out,
                                 const ncclConfig_t *config, const void *caller)
{
    *call = SLC_SHIM_PLAIN_CALL;
    call->operation = SLC_RECORD_INIT;
    call->count = (size_t)size;
    call->caller = caller;
    slc_shim_recorder *recorder = slc_shim_recorder_get();
    const slc_shim_real *real = slc_shim_real_for(caller);
    slc_shim_recorder_note_library(recorder, real);
    call->known = slc_shim_comm_create(recorder, real, key, rank, size);
    slc_shim_call_begin(call);
    if (!call->known) return NULL;
    call->known->entry = call->entry;
    call->known->out = out;
    take_config(call->known, config, NULL);
    return call->known;
}

static ncclResult_t end_init(slc_shim_call *call, ncclResult_t result)
{
    slc_shim_call_end(call, result);
    if (call->known) slc_shim_comms_made(call->recorder, call->thread, call->known, result);
    return result;
}

#define KEY_OF(id) slc_shim_comm_key(SLC_FNV_START, (id), sizeof *(id))

ncclResult_t ncclCommInitRank(ncclComm_t *comm, int nranks, ncclUniqueId id, int rank)
{
    NCCL_OWN_CALL(CommInitRank(comm, nranks, id, rank));
    slc_shim_call call;
    begin_init(&call, KEY_OF(&id), rank, nranks, comm, NULL, __builtin_return_address(0));
    return end_init(&call, call.real->CommInitRank(comm, nranks, id, rank));
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int nranks, ncclUniqueId id, int rank, ncclConfig_t *config)
{
    NCCL_OWN_CALL(CommInitRankConfig(comm, nranks, id, rank, config));
    slc_shim_call call;
    begin_init(&call, KEY_OF(&id), rank, nranks, comm, config, __builtin_return_address(0));
    return end_init(&call, call.real->CommInitRankConfig(comm, nranks, id, rank, config));
}

ncclResult_t ncclCommInitRankScalable(ncclComm_t *comm, int nranks, int rank, int id_count, ncclUniqueId *ids,
                                      ncclConfig_t *config)
{
    NCCL_OWN_CALL(CommInitRankScalable(comm, nranks, rank, id_count, ids, config));
    slc_shim_call call;
    uint64_t key = ids && id_count > 0 ? KEY_OF(ids) : 1;
    begin_init(&call, key, rank, nranks, comm, config, __builtin_return_address(0));
    return end_init(&call, call.real->CommInitRankScalable(comm, nranks, rank, id_count, ids, config));
}

/* Makes the key for ncclCommInitAll. All ranks are in this process, and NCCL makes the id itself, so the key is made of
 * the process and the number of the call. */
static uint64_t key_of_init_all(slc_shim_recorder *recorder)
{
    const slc_record_header *header = recorder->header;
    uint64_t words[] = {(uint64_t)header->pid, header->started, atomic_fetch_add(&recorder->inits, 1)};
    uint64_t hash = slc_fnv(SLC_FNV_START, header->host, strlen(header->host));
    hash = slc_fnv(hash, header->boot_id, strlen(header->boot_id));
    return slc_shim_comm_key(hash, words, sizeof words);
}

ncclResult_t ncclCommInitAll(ncclComm_t *comms, int count, const int *devices)
{
    NCCL_OWN_CALL(CommInitAll(comms, count, devices));
    slc_shim_recorder *recorder = slc_shim_recorder_get();
    uint64_t key = key_of_init_all(recorder);
    slc_shim_comm *made = NULL, **end = &made;
    slc_shim_call call = SLC_SHIM_PLAIN_CALL;
    for (int i = 0; comms && i < count; i++) {
        *end = begin_init(&call, key, i, count, &comms[i], NULL, __builtin_return_address(0));
        slc_shim_call_end(&call, ncclSuccess);
        if (*end) end = &(*end)->next;
    }
    slc_shim_thread *thread = slc_shim_thread_get(recorder);
    const slc_shim_real *real = slc_shim_real_for(__builtin_return_address(0));
    thread->inside = real;
    if (thread->depth) slc_shim_call_join_groups(thread, real);
    ncclResult_t result = real->CommInitAll(comms, count, devices);
    thread->inside = NULL;
    slc_shim_comms_made(recorder, thread, made, result);
    return result;
}

/* The row of a communicator that is made of another one. What `child` holds is equal on all of its ranks, and differs
 * from that of its parent's other children. */
static slc_shim_comm *create_child(const slc_shim_call *call, const uint64_t child[3], ncclComm_t *out,
                                   const ncclConfig_t *config)
{
    slc_shim_comm *parent = call->known;
    uint64_t words[] = {parent->row->key, child[0], child[1], child[2]};
    uint64_t key = slc_shim_comm_key(SLC_FNV_START, words, sizeof words);
    slc_shim_comm *made = slc_shim_comm_create(call->recorder, call->real, key, -1, 0);
    if (!made) return NULL;
    made->row->parent_key = parent->row->key;
    made->parent = parent;
    made->entry = call->entry;
    made->out = out;
    take_config(made, config, parent);
    made->nonblocking |= parent->nonblocking; /* the call does not block, whatever the child will do */
    return made;
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *out, ncclConfig_t *config)
{
    NCCL_OWN_CALL(CommSplit(comm, color, key, out, config));
    slc_shim_call call = SLC_SHIM_PLAIN_CALL;
    call.operation = SLC_RECORD_SPLIT;
    call.comm = comm;
    call.count = (size_t)(int64_t)color;
    call.peer = key;
    call.caller = __builtin_return_address(0);
    slc_shim_call_begin(&call);
    slc_shim_comm *made = NULL;
    if (call.known && color != NCCL_SPLIT_NOCOLOR) {
        uint64_t child[3] = {call.known->row->collectives, SLC_RECORD_SPLIT, (uint64_t)(int64_t)color};
        made = create_child(&call, child, out, config);
    }
    ncclResult_t result = slc_shim_call_end(&call, call.real->CommSplit(comm, color, key, out, config));
    if (made) slc_shim_comms_made(call.recorder, call.thread, made, result);
    return result;
}

ncclResult_t ncclCommShrink(ncclComm_t comm, int *excluded, int excluded_count, ncclComm_t *out, ncclConfig_t *config,
                            int flags)
{
    NCCL_OWN_CALL(CommShrink(comm, excluded, excluded_count, out, config, flags));
    slc_shim_call call = SLC_SHIM_PLAIN_CALL;
    call.operation = SLC_RECORD_SHRINK;
    call.comm = comm;
    call.count = (size_t)excluded_count;
    call.caller = __builtin_return_address(0);
    slc_shim_call_begin(&call);
    slc_shim_comm *made = NULL;
    if (call.known) {
        /* The key of a shrink counts shrinks, not collectives, of which ranks have called different numbers after a
         * fault; and it takes the excluded ranks in any order, since each rank may name them in its own. */
        uint64_t child[3] = {SLC_RECORD_SHRINK, call.known->shrinks++};
        for (int i = 0; excluded && i < excluded_count; i++)
            child[2] += slc_fnv(SLC_FNV_START, &excluded[i], sizeof excluded[i]);
        made = create_child(&call, child, out, config);
    }
    ncclResult_t result =
        slc_shim_call_end(&call, call.real->CommShrink(comm, excluded, excluded_count, out, config, flags));
    if (made) slc_shim_comms_made(call.recorder, call.thread, made, result);
    return result;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error)
{
    NCCL_OWN_CALL(CommGetAsyncError(comm, error));
    slc_shim_recorder *recorder = slc_shim_recorder_get();
    slc_shim_comm *known = slc_shim_comm_find(recorder, comm);
    const slc_shim_real *real = known ? known->real : slc_shim_real_default();
    uint64_t noted = known ? slc_shim_measure_before_asking(recorder, known) : 0;
    ncclResult_t result = real->CommGetAsyncError(comm, error);
    if (known && result == ncclSuccess) slc_shim_measure_asked(recorder, known, noted, *error);
    if (known && result == ncclSuccess) slc_shim_comms_asked(recorder, known, *error);
    if (result == ncclSuccess && slc_shim_has_failed(*error)) atomic_store(&recorder->fault, true);
    return result;
}

/* ---- Ends ---- */

#define BEGIN_END(call, OPERATION, handle)                                                                             \
    slc_shim_call call = SLC_SHIM_PLAIN_CALL;                                                                          \
    call.operation = OPERATION;                                                                                        \
    call.comm = handle;                                                                                                \
    call.caller = __builtin_return_address(0);                                                                         \
    slc_shim_call_begin(&call)

static void before_end(const slc_shim_call *call)
{
    /* An abort comes to end what hangs: nothing goes before it that could wait for the driver. */
    if (call->operation != SLC_RECORD_ABORT) slc_shim_measure_harvest(call->recorder);
    const slc_shim_transforms *transforms = call->recorder->transforms;
    if (transforms && call->known) transforms->ended(call->known, call->operation == SLC_RECORD_ABORT);
}

static ncclResult_t end_with_state(slc_shim_call *call, ncclResult_t result, slc_record_row_state state)
{
    slc_shim_call_end(call, result);
    if (call->known && !slc_shim_has_failed(result)) slc_shim_comm_state(call->known, state);
    return result;
}

static ncclResult_t end_for_good(slc_shim_call *call, ncclResult_t result, slc_record_row_state state)
{
    end_with_state(call, result, state);
    if (!call->known || slc_shim_has_failed(result)) return result;
    while (slc_shim_comm_arrived(call->recorder, call->known)) continue; /* those that it split off outlive it */
    slc_shim_comm_forget(call->recorder, call->known);
    slc_shim_measure_comm_ended(call->recorder, call->known);
    atomic_store(&call->known->is_gone, true);
    return result;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm)
{
    NCCL_OWN_CALL(CommFinalize(comm));
    BEGIN_END(call, SLC_RECORD_FINALIZE, comm);
    return end_with_state(&call, call.real->CommFinalize(comm), SLC_RECORD_ROW_FINALIZED);
}

ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
    NCCL_OWN_CALL(CommDestroy(comm));
    BEGIN_END(call, SLC_RECORD_DESTROY, comm);
    before_end(&call);
    return end_for_good(&call, call.real->CommDestroy(comm), SLC_RECORD_ROW_DESTROYED);
}

ncclResult_t ncclCommAbort(ncclComm_t comm)
{
    NCCL_OWN_CALL(CommAbort(comm));
    BEGIN_END(call, SLC_RECORD_ABORT, comm);
    before_end(&call);
    return end_for_good(&call, call.real->CommAbort(comm), SLC_RECORD_ROW_ABORTED);
}

ncclResult_t ncclCommRevoke(ncclComm_t comm, int flags)
{
    NCCL_OWN_CALL(CommRevoke(comm, flags));
    BEGIN_END(call, SLC_RECORD_REVOKE, comm);
    atomic_store(&call.recorder->fault, true);
    return slc_shim_call_end(&call, call.real->CommRevoke(comm, flags));
}

#define TWIN(result, name, parameters, arguments) SLC_SHIM_TWIN(name);
SLC_NCCL_LIFETIME(TWIN)
