/* Writes entries. An entry is claimed by one atomic addition; every word of it is written with an atomic store, because
 * a reader in another process may look at any time. shim_test.c covers this file. */
#include "plugins/nccl/shim/call.h"

#include "plugins/nccl/shim/callers.h"
#include "plugins/nccl/shim/communicators.h"
#include "plugins/nccl/shim/entry.h"
#include "plugins/nccl/shim/measure/measure.h"
#include "plugins/nccl/shim/recorder.h"

#include <stdlib.h>
#include <time.h>

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* Stores a word of an entry with release order, so that no reader sees the word before it sees the 0 in the entry's
 * sequence. */
static inline void put64(uint64_t *word, uint64_t value)
{
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
}

static inline void put32(uint32_t *word, uint32_t value)
{
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
}

static unsigned recorded_redop(const slc_shim_call *call)
{
    if (call->redop == SLC_RECORD_NO_REDOP) return SLC_RECORD_NO_REDOP;
    return call->redop < ncclNumOps ? call->redop : SLC_RECORD_CUSTOM_REDOP;
}

/* The number of a send among those to its peer, of a receive among those from it; 0 if it cannot be counted. */
static uint64_t count_with_peer(const slc_shim_call *call)
{
    slc_shim_comm *known = call->known;
    int size = known->row->size;
    if (call->peer < 0 || call->peer >= size) return 0;
    uint64_t *peers = atomic_load_explicit(&known->peers, memory_order_acquire);
    if (!peers) {
        uint64_t *fresh = calloc(2 * (size_t)size, sizeof *fresh);
        if (!fresh) return 0;
        if (atomic_compare_exchange_strong(&known->peers, &peers, fresh))
            peers = fresh;
        else
            free(fresh);
    }
    return ++peers[call->operation == SLC_RECORD_SEND ? call->peer : size + call->peer];
}

/* Counts the call on its communicator and gives its number there. NCCL allows one thread at a time on a communicator,
 * so these are plain additions; they are atomic stores for readers' sake. */
static uint32_t count_on_row(slc_shim_call *call)
{
    slc_record_communicator *row = call->known->row;
    if (!slc_shim_call_is_counted(call)) return (uint32_t)row->calls;
    if (call->operation <= SLC_RECORD_SPLIT) {
        bool split = call->operation == SLC_RECORD_SPLIT;
        uint64_t term = slc_record_hash_term(call->operation, split ? 0 : call->count, call->type, recorded_redop(call),
                                             split ? -1 : call->peer);
        put64(&row->hash, row->hash * SLC_RECORD_HASH_STEP + term);
        put64(&row->collectives, row->collectives + 1);
    }
    if (call->operation >= SLC_RECORD_SEND) call->peer_number = count_with_peer(call);
    put64(&row->calls, row->calls + 1);
    return (uint32_t)row->calls;
}

/* Takes the entry's place for this call alone; false if a newer call has it, or an older one, whose thread was
 * interrupted, is still in it. In the first round a place that holds 0 belongs to the call of that round. */
static bool claim_place(slc_record_entry *entry, uint64_t index, uint64_t mask)
{
    uint32_t mine = (uint32_t)(index + 1), there = __atomic_load_n(&entry->sequence, __ATOMIC_ACQUIRE);
    if (index <= mask) return !there;
    if (!mine || !there || (int32_t)(mine - there) < 0)
        return false; /* as a sequence, 0 would hold the place for ever */
    return __atomic_compare_exchange_n(&entry->sequence, &there, 0, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

static void write_entry(const slc_shim_call *call, uint32_t number)
{
    slc_shim_recorder *recorder = call->recorder;
    const slc_shim_thread *thread = call->thread;
    slc_record_entry *entry = &recorder->entries[call->entry & recorder->entry_mask];
    if (!claim_place(entry, call->entry, recorder->entry_mask)) return;
    uint64_t row = call->known ? call->known->number : SLC_RECORD_NO_COMMUNICATOR;
    uint64_t low = SLC_RECORD_LOW48, redop = recorded_redop(call);
    uint64_t send = (uint64_t)(uintptr_t)call->send & low, receive = (uint64_t)(uintptr_t)call->receive & low;
    if (call->operation == SLC_RECORD_SEND) receive = call->peer_number & low;
    if (call->operation == SLC_RECORD_RECEIVE) send = call->peer_number & low;
    uint32_t flags =
        (thread->depth ? SLC_RECORD_GROUPED : 0u) | (call->captured ? SLC_RECORD_CAPTURED : 0u) | call->flags;
    int64_t now = now_ns();
    put32(&entry->number, number);
    put64((uint64_t *)&entry->time_ns, (uint64_t)now);
    put64(&entry->count, call->count);
    put64(&entry->send_communicator, send | row << 48);
    put64(&entry->receive_thread, receive | (uint64_t)thread->number << 48);
    put64(&entry->stream_operation_dtype,
          ((uint64_t)(uintptr_t)call->stream & low) | (uint64_t)call->operation << 48 | (uint64_t)call->type << 56);
    put64(&entry->caller_module_redop, slc_shim_module_caller(recorder, call->caller, now) | redop << 56);
    put32((uint32_t *)&entry->peer, (uint32_t)call->peer);
    put32(&entry->group_flags, (thread->depth ? thread->group & 0xffffffu : 0u) | flags << 24);
    __atomic_store_n(&entry->sequence, (uint32_t)(call->entry + 1), __ATOMIC_RELEASE);
}

static bool is_on_stream(const slc_shim_call *call)
{
    return slc_shim_call_is_counted(call) && call->operation != SLC_RECORD_SPLIT;
}

/* A group is begun in the default library at once, and in another library when the first call of the group needs it. */
void slc_shim_call_join_groups(slc_shim_thread *thread, const slc_shim_real *real)
{
    if (real == slc_shim_real_default() || thread->libraries & 1u << real->number) return;
    thread->libraries |= 1u << real->number;
    for (unsigned i = 0; i < thread->depth; i++) real->GroupStart();
}

void slc_shim_call_record(slc_shim_call *call)
{
    call->entry = __atomic_fetch_add(&call->recorder->header->entries, 1, __ATOMIC_RELAXED);
    write_entry(call, call->known ? count_on_row(call) : 0);
}

void slc_shim_call_begin(slc_shim_call *call)
{
    slc_shim_recorder *recorder = slc_shim_recorder_get();
    call->recorder = recorder;
    call->thread = slc_shim_thread_get(recorder);
    if (call->comm) call->known = slc_shim_comm_find(recorder, call->comm);
    call->real = call->known ? call->known->real : slc_shim_real_default();
    if (recorder->driver && is_on_stream(call)) call->captured = slc_shim_measure_is_captured(recorder, call->stream);
    slc_shim_call_record(call);
    call->thread->inside = call->real;
    if (call->thread->depth) slc_shim_call_join_groups(call->thread, call->real);
    if (__builtin_expect(recorder->measures, 0) && is_on_stream(call)) slc_shim_measure_begin(call);
}

ncclResult_t slc_shim_call_end(slc_shim_call *call, ncclResult_t result)
{
    if (__builtin_expect(call->recorder->measures, 0) && is_on_stream(call)) slc_shim_measure_end(call, result);
    call->thread->inside = NULL;
    if (call->known && slc_shim_call_is_counted(call))
        put64(&call->known->row->returned, call->known->row->returned + 1);
    if (__builtin_expect(slc_shim_has_failed(result), 0)) slc_shim_entry_failed(call->recorder, call->entry);
    return result;
}
