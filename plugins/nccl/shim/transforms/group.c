/* Groups in which calls are taken. NCCL launches the communicators of a group in the order in which it first hears of
 * them, and ranks that do so in another order would wait for each other. So from a thread's first taken call on all
 * calls of its group are kept, whatever they are, and made at the group's end in the program's order. So are
 * destructions of operators, which calls that are kept may still need. tests/nccl/on_the_bed.py covers this file. */
#include "plugins/nccl/shim/transforms/state.h"

#include "lib/base/log.h"
#include "plugins/nccl/shim/entry.h"

#include <pthread.h>
#include <stdlib.h>

typedef struct {
    slc_shim_call call;
    slc_shim_transformed *t; /* NULL: it is made as it is */
    size_t taken;            /* else its index there */
    bool destroys;           /* it is ncclRedOpDestroy, not an operation */
} held_call;

/* The calls that a thread keeps until its group ends; later groups, of any thread, use the struct again. */
typedef struct group {
    held_call *calls;
    size_t count, capacity;
    slc_shim_transformed *list; /* communicators with taken calls */
    struct group *next;         /* of those that are not in use */
} group;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static group *unused;

static group *get_group(void)
{
    pthread_mutex_lock(&lock);
    group *g = unused;
    if (g) unused = g->next;
    pthread_mutex_unlock(&lock);
    return g ? g : calloc(1, sizeof *g);
}

static void give_back(group *g)
{
    g->count = 0, g->list = NULL;
    pthread_mutex_lock(&lock);
    g->next = unused, unused = g;
    pthread_mutex_unlock(&lock);
}

static bool make_room(group *g)
{
    if (g->count < g->capacity) return true;
    const size_t capacity = g->capacity ? 2 * g->capacity : 64;
    held_call *larger = realloc(g->calls, capacity * sizeof *larger);
    if (!larger) return false;
    g->calls = larger, g->capacity = capacity;
    return true;
}

/* Adds a communicator with its first taken call. */
static void join(group *g, slc_shim_transformed *t)
{
    slc_shim_transformed **end = &g->list;
    while (*end) end = &(*end)->next;
    *end = t, t->next = NULL;
}

bool slc_shim_group_hold(slc_shim_call *call, slc_shim_transformed *t, ncclResult_t *result)
{
    slc_shim_thread *thread = call->thread;
    group *g = thread->transforms;
    if (!thread->depth || (!g && !t)) return false;
    if (!g) thread->transforms = g = get_group();
    if (!g || !make_room(g)) {
        slc_log(SLC_LOG_ERROR, "the NCCL shim has no memory for the calls of a group");
        *result = ncclSystemError;
        if (t && !--t->taken_count) slc_shim_transforms_forget_taken(t);
        return true;
    }
    g->calls[g->count++] = (held_call){*call, t, t ? t->taken_count - 1 : 0, false};
    if (t && t->taken_count == 1) join(g, t);
    *result = ncclSuccess;
    return true;
}

bool slc_shim_group_hold_destroy(slc_shim_thread *thread, const slc_shim_real *real, ncclRedOp_t op, ncclComm_t comm,
                                 ncclResult_t *result)
{
    group *g = thread->transforms;
    if (!g || op < ncclNumOps) return false;
    *result = make_room(g) ? ncclSuccess : ncclSystemError;
    if (*result) return true;
    const slc_shim_call call = {.real = real, .redop = op, .comm = comm};
    g->calls[g->count++] = (held_call){.call = call, .destroys = true};
    return true;
}

static ncclResult_t make_call(const slc_shim_call *c)
{
    const slc_shim_real *real = c->real;
    const ncclDataType_t type = (ncclDataType_t)c->type;
    const ncclRedOp_t op = (ncclRedOp_t)c->redop;
    switch (c->operation) {
    case SLC_RECORD_ALL_REDUCE: return real->AllReduce(c->send, c->receive, c->count, type, op, c->comm, c->stream);
    case SLC_RECORD_REDUCE_SCATTER:
        return real->ReduceScatter(c->send, c->receive, c->count, type, op, c->comm, c->stream);
    case SLC_RECORD_ALL_GATHER: return real->AllGather(c->send, c->receive, c->count, type, c->comm, c->stream);
    case SLC_RECORD_REDUCE: return real->Reduce(c->send, c->receive, c->count, type, op, c->peer, c->comm, c->stream);
    case SLC_RECORD_BROADCAST: return real->Broadcast(c->send, c->receive, c->count, type, c->peer, c->comm, c->stream);
    case SLC_RECORD_ALL_TO_ALL: return real->AlltoAll(c->send, c->receive, c->count, type, c->comm, c->stream);
    case SLC_RECORD_GATHER: return real->Gather(c->send, c->receive, c->count, type, c->peer, c->comm, c->stream);
    case SLC_RECORD_SCATTER: return real->Scatter(c->send, c->receive, c->count, type, c->peer, c->comm, c->stream);
    case SLC_RECORD_SEND: return real->Send(c->send, c->count, type, c->peer, c->comm, c->stream);
    case SLC_RECORD_RECEIVE: return real->Recv(c->receive, c->count, type, c->peer, c->comm, c->stream);
    default: return ncclInternalError; /* nothing else is kept */
    }
}

/* Makes a call as it is. */
static ncclResult_t make_held(const held_call *held)
{
    const slc_shim_call *c = &held->call;
    return held->destroys ? c->real->RedOpDestroy((ncclRedOp_t)c->redop, c->comm) : make_call(c);
}

ncclResult_t slc_shim_group_end(slc_shim_recorder *recorder, slc_shim_thread *thread)
{
    group *g = thread->transforms;
    ncclResult_t result = ncclSuccess;
    if (!g) return result;
    for (slc_shim_transformed *t = g->list; t; t = t->next) result = slc_shim_worse(result, slc_shim_fuse_gather(t));
    for (size_t i = 0; i < g->count; i++) {
        held_call *held = &g->calls[i];
        if (held->destroys) {
            result = slc_shim_worse(result, make_held(held));
        } else if (!slc_shim_has_failed(result)) {
            result = held->t ? slc_shim_fuse_call(held->t, &held->t->taken[held->taken]) : make_held(held);
            if (slc_shim_has_failed(result)) slc_shim_entry_failed(recorder, held->call.entry);
        }
    }
    return result;
}

ncclResult_t slc_shim_group_ended(slc_shim_recorder *recorder, slc_shim_thread *thread, ncclResult_t result)
{
    group *g = thread->transforms;
    (void)recorder;
    if (!g) return result;
    thread->transforms = NULL;
    for (slc_shim_transformed *t = g->list; t; t = t->next) {
        if (slc_shim_has_failed(result))
            slc_shim_transforms_nccl_answer(t, "a group with fused or compressed calls", result);
        else
            result = slc_shim_worse(result, slc_shim_fuse_scatter(t));
    }
    if (!slc_shim_has_failed(result) && g->list) result = slc_shim_worse(result, slc_shim_compress_send(g->list));
    for (slc_shim_transformed *t = g->list; t; t = t->next) slc_shim_transforms_forget_taken(t);
    give_back(g);
    return result;
}

void slc_shim_group_is_simulated(slc_shim_thread *thread)
{
    group *g = thread->transforms;
    if (!g) return;
    thread->transforms = NULL;
    for (size_t i = 0; i < g->count; i++) (void)make_held(&g->calls[i]);
    for (slc_shim_transformed *t = g->list; t; t = t->next) slc_shim_transforms_forget_taken(t);
    give_back(g);
}

void slc_shim_group_child(void)
{
    pthread_mutex_init(&lock, NULL);
    unused = NULL;
    slc_shim_this_thread()->transforms = NULL;
}
