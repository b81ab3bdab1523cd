/* ncclGroupStart and ncclGroupEnd, and what waits for the end of the outermost group: communicators made in it.
 * shim_test.c covers this file. */
#include "plugins/nccl/shim/groups.h"

#include "plugins/nccl/shim/communicators.h"
#include "plugins/nccl/shim/entry.h"
#include "plugins/nccl/shim/measure/measure.h"
#include "plugins/nccl/shim/recorder.h"
#include "plugins/nccl/shim/transforms.h"

/* ---- Communicators ---- */

/* Gives a communicator's row its state after creation, unless the communicator has ended meanwhile. */
static void leave_creating(slc_shim_comm *made, uint32_t state)
{
    uint32_t creating = SLC_RECORD_ROW_CREATING;
    __atomic_compare_exchange_n(&made->row->state, &creating, state, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

/* Called when communicators (a list by `next`) can be used: asks NCCL for what their rows do not know yet. */
static void become_ready(slc_shim_recorder *recorder, slc_shim_comm *first)
{
    for (slc_shim_comm *made = first; made; made = made->next) {
        slc_record_communicator *row = made->row;
        int value;
        if (made->real->CommCuDevice(made->comm, &value) == ncclSuccess) row->device = value;
        if (!row->size) {
            if (made->real->CommUserRank(made->comm, &value) == ncclSuccess) row->rank = value;
            if (made->real->CommCount(made->comm, &value) == ncclSuccess) row->size = value;
        }
        atomic_store(&made->is_ready, true);
        leave_creating(made, SLC_RECORD_ROW_READY);
    }
    slc_shim_measure_find_driver(recorder, first->row->device);
    if (recorder->transforms) recorder->transforms->created(recorder, first);
}

/* Notes the state that NCCL reports of a communicator that is being made and is in no list. */
static void take_state(slc_shim_recorder *recorder, slc_shim_comm *made, ncclResult_t state)
{
    if (__atomic_load_n(&made->row->state, __ATOMIC_ACQUIRE) != SLC_RECORD_ROW_CREATING) return;
    if (slc_shim_has_failed(state)) leave_creating(made, SLC_RECORD_ROW_FAILED);
    if (state == ncclSuccess && !atomic_exchange(&made->is_ready, true)) become_ready(recorder, made);
}

void slc_shim_comms_asked(slc_shim_recorder *recorder, slc_shim_comm *known, ncclResult_t state)
{
    take_state(recorder, known, state);
    if (state == ncclInProgress) return;
    for (slc_shim_comm *child; (child = slc_shim_comm_arrived(recorder, known));) {
        ncclResult_t own;
        if (child->real->CommGetAsyncError(child->comm, &own) == ncclSuccess) take_state(recorder, child, own);
    }
    if (slc_shim_has_failed(state)) slc_shim_comm_forget(recorder, known);
}

/* Binds the communicators that have a handle, once nobody needs the list: other threads find them from then on. A child
 * without a handle gets it later or, if the program took itself out of the split, never. */
static void settle(slc_shim_recorder *recorder, slc_shim_comm *list, ncclResult_t result)
{
    slc_shim_comm *bound = NULL, **end = &bound;
    for (slc_shim_comm *made = list, *next; made; made = next) {
        next = made->next;
        made->next = NULL;
        if (slc_shim_has_failed(result)) {
            slc_shim_comm_state(made, SLC_RECORD_ROW_FAILED);
            slc_shim_entry_failed(recorder, made->entry);
            slc_shim_comm_drop(made);
        } else if ((made->comm = __atomic_load_n(made->out, __ATOMIC_ACQUIRE))) {
            *end = made;
            end = &made->next;
        } else if (result == ncclInProgress && made->parent) {
            slc_shim_comm_await(recorder, made);
        } else {
            slc_shim_comm_drop(made);
        }
    }
    if (bound && result == ncclSuccess) become_ready(recorder, bound);
    for (slc_shim_comm *next; bound; bound = next) {
        next = bound->next;
        bound->next = NULL;
        slc_shim_comm_bind(recorder, bound, bound->comm);
    }
}

void slc_shim_comms_made(slc_shim_recorder *recorder, slc_shim_thread *thread, slc_shim_comm *first,
                         ncclResult_t result)
{
    if (!thread->depth || slc_shim_has_failed(result)) {
        settle(recorder, first, result);
        return;
    }
    slc_shim_comm **end = &thread->pending;
    while (*end) end = &(*end)->next;
    *end = first;
}

/* ---- Groups ---- */

/* Calls one function in the default library and in the others that the thread's group uses. */
#define IN_LIBRARIES(thread, result, CALL)                                                                             \
    do {                                                                                                               \
        (thread)->inside = slc_shim_real_default();                                                                    \
        (result) = (thread)->inside->CALL;                                                                             \
        for (unsigned i = 0; i < SLC_SHIM_MOST_LIBRARIES; i++) {                                                       \
            if (!((thread)->libraries & 1u << i)) continue;                                                            \
            (thread)->inside = slc_shim_real_numbered(i);                                                              \
            ncclResult_t more = (thread)->inside->CALL;                                                                \
            if ((result) == ncclSuccess) (result) = more;                                                              \
        }                                                                                                              \
        (thread)->inside = NULL;                                                                                       \
    } while (0)

static void begin_outermost(slc_shim_recorder *recorder, slc_shim_thread *thread)
{
    do thread->group = (atomic_fetch_add_explicit(&recorder->groups, 1, memory_order_relaxed) + 1) & 0xffffffu;
    while (!thread->group);
    thread->libraries = 0;
    thread->group_first = __atomic_load_n(&recorder->header->entries, __ATOMIC_RELAXED);
}

/* Marks all calls of a group that failed, because nobody says which of them did. */
static void mark_group_failed(slc_shim_recorder *recorder, const slc_shim_thread *thread)
{
    uint64_t end = __atomic_load_n(&recorder->header->entries, __ATOMIC_RELAXED), first = thread->group_first;
    if (end - first > recorder->entry_mask) first = end - recorder->entry_mask;
    for (uint64_t i = first; i < end; i++) {
        const slc_record_entry *entry = &recorder->entries[i & recorder->entry_mask];
        if ((__atomic_load_n(&entry->group_flags, __ATOMIC_RELAXED) & 0xffffffu) == thread->group)
            slc_shim_entry_failed(recorder, i);
    }
    atomic_store_explicit(&recorder->fault, true, memory_order_relaxed);
}

static void end_outermost(slc_shim_recorder *recorder, slc_shim_thread *thread, ncclResult_t result)
{
    if (slc_shim_has_failed(result)) mark_group_failed(recorder, thread);
    slc_shim_comm *made = thread->pending;
    thread->libraries = 0;
    thread->pending = NULL;
    settle(recorder, made, result);
}

ncclResult_t ncclGroupStart(void)
{
    const slc_shim_real *own = slc_shim_call_of_nccl(__builtin_return_address(0));
    if (own) return own->GroupStart();
    slc_shim_recorder *recorder = slc_shim_recorder_get();
    slc_shim_thread *thread = slc_shim_thread_get(recorder);
    ncclResult_t result;
    if (!thread->depth) begin_outermost(recorder, thread);
    IN_LIBRARIES(thread, result, GroupStart());
    if (result == ncclSuccess) thread->depth++;
    return result;
}

ncclResult_t ncclGroupEnd(void)
{
    const slc_shim_real *own = slc_shim_call_of_nccl(__builtin_return_address(0));
    if (own) return own->GroupEnd();
    slc_shim_recorder *recorder = slc_shim_recorder_get();
    slc_shim_thread *thread = slc_shim_thread_get(recorder);
    const slc_shim_transforms *transforms = thread->depth == 1 ? recorder->transforms : NULL;
    ncclResult_t result, held = ncclSuccess;
    bool measured = thread->depth == 1 && recorder->measures;
    if (measured) slc_shim_measure_group_begin(recorder, thread);
    if (transforms) held = transforms->group_end(recorder, thread);
    IN_LIBRARIES(thread, result, GroupEnd());
    if (transforms) result = transforms->group_ended(recorder, thread, slc_shim_has_failed(held) ? held : result);
    if (measured) slc_shim_measure_group_end(recorder, thread, result);
    if (thread->depth && !--thread->depth) end_outermost(recorder, thread, result);
    return result;
}

ncclResult_t ncclGroupSimulateEnd(ncclSimInfo_t *info)
{
    const slc_shim_real *own = slc_shim_call_of_nccl(__builtin_return_address(0));
    if (own) return own->GroupSimulateEnd(info);
    slc_shim_recorder *recorder = slc_shim_recorder_get();
    slc_shim_thread *thread = slc_shim_thread_get(recorder);
    const slc_shim_transforms *transforms = thread->depth == 1 ? recorder->transforms : NULL;
    ncclResult_t result;
    if (thread->depth == 1) slc_shim_measure_group_simulated(thread);
    if (transforms) transforms->group_is_simulated(thread);
    IN_LIBRARIES(thread, result, GroupSimulateEnd(info));
    if (thread->depth && !--thread->depth) end_outermost(recorder, thread, result);
    return result;
}

SLC_SHIM_TWIN(GroupStart);
SLC_SHIM_TWIN(GroupEnd);
SLC_SHIM_TWIN(GroupSimulateEnd);
