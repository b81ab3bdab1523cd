/* Decides what is measured of a call or a group, and writes what streams have finished. */
#include "plugins/nccl/shim/measure/measure.h"

#include "lib/base/log.h"
#include "plugins/nccl/shim/measure/launches.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

static void begin_child(void);

/* ---- Contexts ---- */

/* Returns a device's primary context; NULL: it has none. NCCL holds the context while it has a communicator there. */
static slc_shim_driver_context context_of_device(const slc_shim_driver *driver, int device)
{
    slc_shim_driver_context context = NULL;
    if (device < 0 || driver->DevicePrimaryCtxRetain(&context, device)) return NULL;
    driver->DevicePrimaryCtxRelease(device);
    return context;
}

/* Makes the context current. Returns true if `leave` must take that back. */
static bool enter(const slc_shim_recorder *recorder, slc_shim_driver_context context)
{
    slc_shim_driver_context current = NULL;
    if (!context || recorder->driver->CtxGetCurrent(&current) || current == context) return false;
    return !recorder->driver->CtxPushCurrent(context);
}

static void leave(const slc_shim_recorder *recorder)
{
    slc_shim_driver_context context;
    recorder->driver->CtxPopCurrent(&context);
}

/* ---- The driver ---- */

/* Lets devices write into the communicators' rows. The thread that asks first need not have a context. */
static void register_rows(slc_shim_recorder *recorder, int device)
{
    enum { PORTABLE = 1, MAPPED = 2 };
    const slc_shim_driver *driver = recorder->driver;
    size_t bytes = SLC_RECORD_COMMUNICATORS * sizeof *recorder->rows;
    uint64_t address = 0;
    bool entered = driver->CtxGetDevice(&(int){0}) && enter(recorder, context_of_device(driver, device));
    int error = driver->MemHostRegister(recorder->rows, bytes, PORTABLE | MAPPED);
    if (!error) error = driver->MemHostGetDevicePointer(&address, recorder->rows, 0);
    if (entered) leave(recorder);
    if (error) {
        slc_log(SLC_LOG_WARN, "SLUICE_SHIM_DONE has no effect: CUDA's driver does not take the record (error %d)",
                error);
        recorder->wants_done = false;
        return;
    }
    recorder->header->done_is_written = 1;
    atomic_store(&recorder->done_at, address);
}

static void use_driver(slc_shim_recorder *recorder, const slc_shim_driver *found, int device)
{
    static slc_shim_driver driver;
    if (!found) {
        if (recorder->wants_done || recorder->times)
            slc_log(SLC_LOG_WARN,
                    "SLUICE_SHIM_DONE and _TIME have no effect: this process has no libcuda.so.1 that can");
        return;
    }
    static _Atomic bool watches_forks;
    if (!atomic_exchange(&watches_forks, true)) pthread_atfork(NULL, NULL, begin_child);
    driver = *found;
    recorder->driver = &driver;
    if (recorder->wants_done) register_rows(recorder, device);
    atomic_store(&recorder->measures, recorder->wants_done || recorder->times);
}

/* One thread uses the driver first; others wait for it, since what they call next is to be measured too. The loader is
 * asked before, with nothing held. */
void slc_shim_measure_find_driver(slc_shim_recorder *recorder, int device)
{
    if (atomic_load(&recorder->driver_is_known)) return;
    slc_shim_driver driver;
    const bool found = slc_shim_driver_find(&driver);
    if (atomic_exchange(&recorder->driver_is_claimed, true)) {
        while (!atomic_load(&recorder->driver_is_known)) sched_yield();
        return;
    }
    use_driver(recorder, found ? &driver : NULL, device);
    atomic_store(&recorder->driver_is_known, true);
}

bool slc_shim_measure_is_captured(const slc_shim_recorder *recorder, cudaStream_t stream)
{
    int status = 0;
    return !recorder->driver->StreamIsCapturing(stream, &status) && status;
}

/* ---- Finished ---- */

static void write_done(slc_shim_recorder *recorder, const slc_shim_comm *known, cudaStream_t stream, uint64_t number)
{
    uint64_t at = atomic_load_explicit(&recorder->done_at, memory_order_relaxed);
    if (!at || !known || known->number == SLC_RECORD_NO_COMMUNICATOR) return;
    at += known->number * sizeof *recorder->rows + offsetof(slc_record_communicator, done);
    int error = recorder->driver->StreamWriteValue64(stream, at, number, 0);
    if (!error || !atomic_exchange(&recorder->done_at, 0)) return;
    recorder->header->done_is_written = 0;
    slc_log(SLC_LOG_WARN, "SLUICE_SHIM_DONE has no effect any more: cuStreamWriteValue64 failed with CUDA error %d",
            error);
}

typedef enum { LAUNCHED, FAILED, NEVER_KNOWN } mark_end;

/* Puts onto the stream what belongs after the operations. If nobody knows when they are on their stream, nothing is put
 * there, and their times are lost. */
static void end_mark(slc_shim_recorder *recorder, const slc_shim_stream_mark *mark, mark_end how)
{
    bool entered = how == LAUNCHED && enter(recorder, mark->context);
    if (how == LAUNCHED) write_done(recorder, mark->known, mark->stream, mark->number);
    if (mark->pair) {
        mark->pair->row = mark->known ? mark->known->number : SLC_RECORD_NO_COMMUNICATOR;
        mark->pair->group = mark->group;
        mark->pair->first = mark->first;
        mark->pair->last = mark->last;
        if (how == NEVER_KNOWN)
            slc_shim_times_lose(recorder, mark->pair);
        else
            slc_shim_times_end(recorder, mark->pair, how == FAILED);
    }
    if (entered) leave(recorder);
}

/* ---- Launches ---- */

static inline void put_unlaunched(slc_shim_comm *known, uint64_t number)
{
    __atomic_store_n(&known->row->unlaunched, number, __ATOMIC_RELEASE);
}

/* Called when a call or group has returned: ends its mark, or holds the mark until NCCL has launched the operations. */
static void end_or_hold(slc_shim_recorder *recorder, const slc_shim_stream_mark *mark, ncclResult_t result)
{
    bool in_progress = result == ncclInProgress, unlaunched = mark->known && mark->known->row->unlaunched;
    if (in_progress && mark->known) {
        if (!unlaunched) put_unlaunched(mark->known, mark->first_number);
        if (slc_shim_launches_hold(mark)) return;
    }
    if (result == ncclSuccess && unlaunched) put_unlaunched(mark->known, 0);
    end_mark(recorder, mark, in_progress ? NEVER_KNOWN : slc_shim_has_failed(result) ? FAILED : LAUNCHED);
}

/* Gives up the marks that are held, because the program goes on without having asked whether the operations were
 * launched. Returns true if there were any. */
static bool forget_launches(slc_shim_recorder *recorder, slc_shim_comm *known)
{
    size_t count = 0;
    const slc_shim_stream_mark *marks = slc_shim_launches_take(known, slc_shim_launches_noted(known), &count);
    if (!marks) return false;
    for (size_t i = 0; i < count; i++) end_mark(recorder, &marks[i], NEVER_KNOWN);
    slc_shim_launches_taken(known);
    return true;
}

uint64_t slc_shim_measure_before_asking(const slc_shim_recorder *recorder, const slc_shim_comm *known)
{
    return recorder->measures ? slc_shim_launches_noted(known) : 0;
}

void slc_shim_measure_asked(slc_shim_recorder *recorder, slc_shim_comm *known, uint64_t noted, ncclResult_t state)
{
    if (!noted || state == ncclInProgress) return;
    size_t count = 0;
    const slc_shim_stream_mark *marks = slc_shim_launches_take(known, noted, &count);
    if (marks) {
        bool failed = slc_shim_has_failed(state);
        for (size_t i = 0; i < count; i++) end_mark(recorder, &marks[i], failed ? FAILED : LAUNCHED);
        if (!failed) put_unlaunched(known, 0);
        slc_shim_launches_taken(known);
    }
    slc_shim_launches_wait(
        known); /* what this thread puts on the stream next comes after what another one puts there */
}

void slc_shim_measure_comm_ended(slc_shim_recorder *recorder, slc_shim_comm *known)
{
    forget_launches(recorder, known);
    slc_shim_launches_end(known);
}

/* ---- Groups ---- */

/* The marks of a group that is open: one for each pair of a stream and a communicator. */
struct slc_shim_group_streams {
    size_t count, room;
    slc_shim_stream_mark *streams; /* grows, and is kept */
};

/* Lists that no group uses: the next group takes one of them, in whatever thread. */
static _Atomic(slc_shim_group_streams *) spare[32];

static slc_shim_group_streams *take_streams(void)
{
    for (size_t i = 0; i < sizeof spare / sizeof *spare; i++) {
        slc_shim_group_streams *found = atomic_load_explicit(&spare[i], memory_order_relaxed);
        if (found && (found = atomic_exchange(&spare[i], NULL))) return found;
    }
    return calloc(1, sizeof(slc_shim_group_streams));
}

static void put_streams(slc_shim_group_streams *streams)
{
    streams->count = 0;
    for (size_t i = 0; i < sizeof spare / sizeof *spare; i++) {
        slc_shim_group_streams *none = NULL;
        if (atomic_compare_exchange_strong(&spare[i], &none, streams)) return;
    }
    free(streams->streams);
    free(streams);
}

/* Begins anew in a forked process: it owns nothing of CUDA's, and what its one thread had noted for a group belongs to
 * the parent's recorder. */
static void begin_child(void)
{
    slc_shim_measure_group_simulated(slc_shim_this_thread());
    slc_shim_times_begin_child();
}

/* The context that the call's stream is of, which need not be the thread's current one: NCCL makes current what it
 * needs. Default streams have one handle on all devices, and NCCL takes that of the communicator's. */
static slc_shim_driver_context context_of(const slc_shim_call *call)
{
    enum { MOST_DEFAULT = 2 }; /* 0, cudaStreamLegacy and cudaStreamPerThread */
    const slc_shim_driver *driver = call->recorder->driver;
    slc_shim_driver_context context = NULL;
    int current, device = call->known ? call->known->row->device : -1;
    if ((uintptr_t)call->stream > MOST_DEFAULT && !driver->StreamGetCtx(call->stream, &context)) return context;
    driver->CtxGetCurrent(&context);
    if ((uintptr_t)call->stream > MOST_DEFAULT || device < 0) return context;
    if (!driver->CtxGetDevice(&current) && current == device) return context;
    return context_of_device(driver, device);
}

static slc_shim_stream_mark *stream_of_group(slc_shim_thread *thread, const slc_shim_call *call)
{
    slc_shim_group_streams *all = thread->streams;
    for (size_t i = all ? all->count : 0; i-- > 0;)
        if (all->streams[i].known == call->known && all->streams[i].stream == call->stream) return &all->streams[i];
    if (!all && !(thread->streams = all = take_streams())) return NULL;
    if (all->count == all->room) {
        size_t room = all->room ? 2 * all->room : 16;
        slc_shim_stream_mark *more = realloc(all->streams, room * sizeof *more);
        if (!more) return NULL;
        all->streams = more;
        all->room = room;
    }
    slc_shim_stream_mark *fresh = &all->streams[all->count++];
    *fresh = (slc_shim_stream_mark){.known = call->known, .stream = call->stream, .first = call->entry};
    fresh->context = context_of(call);
    fresh->group = thread->group;
    fresh->first_number = call->known ? call->known->row->calls : 0;
    return fresh;
}

void slc_shim_measure_group_begin(slc_shim_recorder *recorder, slc_shim_thread *thread)
{
    for (size_t i = 0; recorder->times && thread->streams && i < thread->streams->count; i++) {
        slc_shim_stream_mark *one = &thread->streams->streams[i];
        if (one->untimed) continue;
        bool entered = enter(recorder, one->context);
        one->pair = slc_shim_times_begin(recorder, one->stream);
        if (entered) leave(recorder);
    }
}

void slc_shim_measure_group_end(slc_shim_recorder *recorder, slc_shim_thread *thread, ncclResult_t result)
{
    size_t count = thread->streams ? thread->streams->count : 0;
    for (size_t i = 0; i < count; i++) end_or_hold(recorder, &thread->streams->streams[i], result);
    for (size_t i = 0; i < count && result == ncclInProgress; i++)
        if (thread->streams->streams[i].known) slc_shim_launches_publish(thread->streams->streams[i].known);
    slc_shim_measure_group_simulated(thread);
}

void slc_shim_measure_group_simulated(slc_shim_thread *thread)
{
    if (thread->streams) put_streams(thread->streams);
    thread->streams = NULL;
}

/* ---- Single calls ---- */

static void begin_single(slc_shim_call *call)
{
    if (!call->recorder->times) return;
    bool entered = enter(call->recorder, context_of(call));
    call->pair = slc_shim_times_begin(call->recorder, call->stream);
    if (entered) leave(call->recorder);
}

void slc_shim_measure_begin(slc_shim_call *call)
{
    if (call->captured) return;
    /* If the program never asked whether its earlier calls were launched, NCCL may launch them only now. */
    bool unknown = call->known && forget_launches(call->recorder, call->known);
    if (!call->thread->depth) {
        if (!unknown) begin_single(call);
        if (unknown && call->recorder->times) slc_shim_times_lost(call->recorder);
        return;
    }
    slc_shim_stream_mark *one = stream_of_group(call->thread, call);
    if (!one) return;
    one->last = call->entry;
    one->number = call->known ? call->known->row->calls : 0;
    one->untimed |= unknown;
    if (one->untimed && call->recorder->times) slc_shim_times_lost(call->recorder);
}

void slc_shim_measure_end(slc_shim_call *call, ncclResult_t result)
{
    if (call->captured || call->thread->depth) return;
    slc_shim_stream_mark mark = {.known = call->known, .stream = call->stream, .context = context_of(call)};
    mark.first_number = mark.number = call->known ? call->known->row->calls : 0;
    mark.first = mark.last = call->entry;
    mark.pair = call->pair;
    end_or_hold(call->recorder, &mark, result);
    if (result == ncclInProgress && call->known) slc_shim_launches_publish(call->known);
}

void slc_shim_measure_harvest(slc_shim_recorder *recorder)
{
    if (recorder->times && recorder->driver) slc_shim_times_harvest(recorder);
}
