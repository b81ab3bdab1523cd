/* Writes the records of the shim through NCCL's own profiler interface, for programs that may not be preloaded or have
 * NCCL inside: NCCL_PROFILER_PLUGIN=/path/to/libsluice_nccl.so. NCCL does not say which operator a reduction has, which
 * addresses it works on, nor who called; entries are marked SLC_RECORD_INSIDE. Sends and receives are recorded when
 * NCCL launches
 * them, because only then it names the other rank. shim_test.c covers this file. */
#include "plugins/nccl/shim/call.h"
#include "plugins/nccl/shim/communicators.h"
#include "plugins/nccl/shim/profiler_v5.h"

#include "lib/base/log.h"
#include "plugins/nccl/shim/library/real_dlsym.h"
#include "plugins/nccl/shim/recorder.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* NCCL gets one of these as an event's handle; a communicator has three. */
typedef struct profiled_comm profiled_comm;
typedef struct {
    profiled_comm *comm;
    bool is_counted; /* its end is a call's return */
} profiled_event;

/* A communicator as NCCL hands it back to us. */
struct profiled_comm {
    slc_shim_recorder *recorder; /* of the process that made it: one that is forked records nothing of it */
    slc_shim_comm *made;
    profiled_event collective, p2p_call, p2p;
};

/* Returns true if the program finds our functions before NCCL's. NCCL opens its plugins where they are found by nobody
 * else. */
static bool is_preloaded(void)
{
    void *program = dlopen(NULL, RTLD_LAZY), *function = slc_shim_real_dlsym(program, "ncclAllReduce");
    dlclose(program);
    return function && slc_shim_is_ours(function);
}

/* ---- Names ---- */

static slc_record_operation operation_named(const char *name)
{
    static const struct {
        const char *name;
        slc_record_operation operation;
    } names[] = {
        {"AllReduce", SLC_RECORD_ALL_REDUCE},
        {"ReduceScatter", SLC_RECORD_REDUCE_SCATTER},
        {"AllGather", SLC_RECORD_ALL_GATHER},
        {"Reduce", SLC_RECORD_REDUCE},
        {"Broadcast", SLC_RECORD_BROADCAST},
        {"AlltoAll", SLC_RECORD_ALL_TO_ALL},
        {"Gather", SLC_RECORD_GATHER},
        {"Scatter", SLC_RECORD_SCATTER},
        {"Send", SLC_RECORD_SEND},
        {"Recv", SLC_RECORD_RECEIVE},
    };
    for (size_t i = 0; name && i < sizeof names / sizeof *names; i++)
        if (!strcmp(names[i].name, name)) return names[i].operation;
    return SLC_RECORD_OPERATION_COUNT;
}

static unsigned type_named(const char *name)
{
    static const char *const names[ncclNumTypes] = {"ncclInt8",    "ncclUint8",    "ncclInt32",      "ncclUint32",
                                                    "ncclInt64",   "ncclUint64",   "ncclFloat16",    "ncclFloat32",
                                                    "ncclFloat64", "ncclBfloat16", "ncclFloat8e4m3", "ncclFloat8e5m2"};
    for (unsigned i = 0; name && i < ncclNumTypes; i++)
        if (!strcmp(names[i], name)) return i;
    return SLC_SHIM_NO_TYPE;
}

/* ---- Events ---- */

static void record(profiled_comm *comm, slc_shim_call *call)
{
    if (comm->recorder != slc_shim_recorder_get()) return;
    call->recorder = comm->recorder;
    call->thread = slc_shim_thread_get(comm->recorder);
    call->known = comm->made;
    call->flags = SLC_RECORD_INSIDE;
    slc_shim_call_record(call);
}

static ncclResult_t init(void **context, uint64_t comm_id, int *activation_mask, const char *comm_name, int nodes,
                         int ranks, int rank, void *log)
{
    (void)comm_name, (void)nodes, (void)log;
    *context = NULL;
    *activation_mask = 0;
    if (is_preloaded()) {
        slc_log(SLC_LOG_INFO, "NCCL's profiler interface is left alone: the shim is preloaded and records already");
        return ncclSuccess;
    }
    profiled_comm *comm = calloc(1, sizeof *comm);
    if (!comm) return ncclSystemError;
    comm->recorder = slc_shim_recorder_get();
    comm->collective = (profiled_event){comm, true};
    comm->p2p = (profiled_event){comm, true};
    comm->p2p_call = (profiled_event){comm, false};
    comm->made = slc_shim_comm_create(comm->recorder, NULL, comm_id ? comm_id : 1, rank, ranks);
    if (!comm->made) {
        free(comm);
        return ncclSystemError;
    }
    slc_shim_call call = SLC_SHIM_PLAIN_CALL;
    call.operation = SLC_RECORD_INIT;
    call.count = (size_t)ranks;
    record(comm, &call);
    slc_shim_comm_state(comm->made, SLC_RECORD_ROW_READY);
    *context = comm;
    *activation_mask = SLC_SHIM_PROFILE_COLL_API | SLC_SHIM_PROFILE_P2P_API | SLC_SHIM_PROFILE_P2P;
    return ncclSuccess;
}

static bool record_collective(profiled_comm *comm, const slc_shim_profiler_event *event)
{
    slc_shim_call call = SLC_SHIM_PLAIN_CALL;
    call.operation = operation_named(event->collective.function);
    if (call.operation > SLC_RECORD_SCATTER) return false;
    call.count = event->collective.count;
    call.type = type_named(event->collective.type);
    call.stream = event->collective.stream;
    call.captured = event->collective.captured;
    bool rooted = call.operation == SLC_RECORD_REDUCE || call.operation == SLC_RECORD_BROADCAST ||
                  call.operation == SLC_RECORD_GATHER || call.operation == SLC_RECORD_SCATTER;
    if (rooted) call.peer = event->collective.root;
    record(comm, &call);
    return slc_shim_call_is_counted(&call);
}

static bool record_p2p(profiled_comm *comm, const slc_shim_profiler_event *event)
{
    slc_shim_call call = SLC_SHIM_PLAIN_CALL;
    call.operation = operation_named(event->p2p.function);
    if (call.operation != SLC_RECORD_SEND && call.operation != SLC_RECORD_RECEIVE) return false;
    call.count = event->p2p.count;
    call.type = type_named(event->p2p.type);
    call.peer = event->p2p.peer;
    record(comm, &call);
    return true;
}

static ncclResult_t start_event(void *context, void **handle, slc_shim_profiler_event *event)
{
    profiled_comm *comm = context;
    *handle = NULL;
    if (!comm) return ncclSuccess;
    if (event->type == SLC_SHIM_PROFILE_P2P_API) {
        *handle = &comm->p2p_call;
    } else if (event->type == SLC_SHIM_PROFILE_COLL_API) {
        if (record_collective(comm, event)) *handle = &comm->collective;
    } else if (event->type == SLC_SHIM_PROFILE_P2P && event->parent == &comm->p2p_call) {
        if (record_p2p(comm, event)) *handle = &comm->p2p; /* others are parts of a collective */
    }
    return ncclSuccess;
}

static ncclResult_t stop_event(void *handle)
{
    const profiled_event *event = handle;
    if (!event || !event->is_counted || event->comm->recorder != slc_shim_recorder_get()) return ncclSuccess;
    slc_record_communicator *row = event->comm->made->row;
    __atomic_fetch_add(&row->returned, 1, __ATOMIC_RELEASE);
    return ncclSuccess;
}

static ncclResult_t record_event_state(void *handle, int state, void *arguments)
{
    (void)handle, (void)state, (void)arguments;
    return ncclSuccess;
}

static ncclResult_t finalize(void *context)
{
    profiled_comm *comm = context;
    if (!comm) return ncclSuccess;
    slc_shim_call call = SLC_SHIM_PLAIN_CALL;
    call.operation = SLC_RECORD_DESTROY;
    record(comm, &call);
    if (comm->recorder == slc_shim_recorder_get()) slc_shim_comm_state(comm->made, SLC_RECORD_ROW_DESTROYED);
    slc_shim_comm_drop(comm->made);
    free(comm);
    return ncclSuccess;
}

extern const slc_shim_profiler_v5 ncclProfiler_v5;
__attribute__((visibility("default")))
const slc_shim_profiler_v5 ncclProfiler_v5 = {"Sluice", init, start_event, stop_event, record_event_state, finalize};
