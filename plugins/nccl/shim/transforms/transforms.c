/* Decides which calls are changed, and when. The decision rests on what all ranks know alike: a call's operation,
 * count, type and operator, the settings, whether its stream is captured, and whether its communicator has a window,
 * which all ranks make together. Addresses and streams decide nothing: a buffer may be registered on one rank and not
 * on another.
 * tests/nccl/on_the_bed.py covers this file. */
#include "plugins/nccl/shim/transforms/state.h"

#include "lib/base/log.h"
#include "lib/base/status.h"

#include <stdlib.h>
#include <string.h>

enum { NO_REASON = -1 };

/* ---- Taking calls ---- */

static uint64_t type_bytes(ncclDataType_t type)
{
    static const uint8_t bytes[ncclNumTypes] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
    return (unsigned)type < ncclNumTypes ? bytes[type] : 0;
}

/* True if the stream is captured. One that cannot be asked counts as captured: the legacy stream cannot while another
 * one is captured. */
static bool is_captured(const slc_shim_transformed *t, cudaStream_t stream)
{
    int status = 0;
    if (slc_shim_gpu_enter(t->gpu)) return true;
    const bool failed = slc_shim_cu()->StreamIsCapturing(stream, &status) != 0;
    slc_shim_gpu_leave();
    return failed || status != 0;
}

/* Says which transform a call is for, by its kind and size; else returns a reason to pass. */
static int choose(slc_shim_transformed *t, const slc_shim_call *call, slc_shim_taken *taken)
{
    const slc_shim_transforms_settings *s = slc_shim_transforms_asked();
    if (call->operation != SLC_RECORD_ALL_REDUCE || call->redop >= ncclNumOps || !type_bytes(taken->type))
        return SLC_RECORD_PASS_KIND;
    if (!call->count || !call->send || !call->receive) return SLC_RECORD_PASS_SIZE;
    const bool large = s->compress && taken->bytes > s->compress, small = s->fuse && taken->bytes <= s->fuse;
    if (small && (call->thread->depth || !large)) return NO_REASON;
    if (!large) return SLC_RECORD_PASS_SIZE;
    if (taken->type != ncclFloat32 || (taken->op != ncclSum && taken->op != ncclAvg)) return SLC_RECORD_PASS_KIND;
    taken->compress = true;
    if (!slc_shim_compress_fits(t, taken->count)) return SLC_RECORD_PASS_STAGING;
    return t->compressible++ < s->compress_after ? SLC_RECORD_PASS_WARMING : NO_REASON;
}

static int reason_to_pass(slc_shim_transformed *t, const slc_shim_call *call, slc_shim_taken *taken)
{
    const int refused = t->refused;
    if (refused >= 0) return refused;
    const int reason = choose(t, call, taken);
    if (reason != NO_REASON) return reason;
    if (t->has_window) return SLC_RECORD_PASS_REGISTERED;
    if (is_captured(t, call->stream)) return SLC_RECORD_PASS_CAPTURED;
    return taken->compress || call->thread->depth ? NO_REASON : SLC_RECORD_PASS_ALONE;
}

/* Marks the communicator as busy: from here on an abort leaves its memory alone. Returns the reason to pass if an abort
 * came first. */
static int begin_taking(slc_shim_transformed *t)
{
    t->busy = true;
    const int refused = t->refused;
    if (refused >= 0 && !t->taken_count) t->busy = false;
    return refused;
}

static sluice_status append(slc_shim_transformed *t, const slc_shim_taken *taken)
{
    if (t->taken_count == t->taken_capacity) {
        const size_t capacity = t->taken_capacity ? 2 * t->taken_capacity : 64;
        slc_shim_taken *larger = realloc(t->taken, capacity * sizeof *larger);
        if (!larger) return slc_error(SLUICE_ERR_MEMORY, "the calls of a group");
        t->taken = larger, t->taken_capacity = capacity;
    }
    t->taken[t->taken_count++] = *taken;
    return SLUICE_OK;
}

static bool take(slc_shim_call *call, ncclResult_t *result)
{
    slc_shim_transformed *t = call->known ? call->known->transforms : NULL;
    slc_shim_taken taken = {.send = call->send,
                            .receive = call->receive,
                            .count = call->count,
                            .bytes = call->count * type_bytes((ncclDataType_t)call->type),
                            .type = (ncclDataType_t)call->type,
                            .op = (ncclRedOp_t)call->redop,
                            .stream = call->stream,
                            .entry = call->entry};
    if (!t) return slc_shim_group_hold(call, NULL, result);
    int reason = reason_to_pass(t, call, &taken);
    if (reason == NO_REASON) reason = begin_taking(t);
    if (reason != NO_REASON) {
        slc_shim_transforms_count_passed(t, (slc_record_pass_reason)reason, taken.bytes);
        return slc_shim_group_hold(call, NULL, result);
    }
    *result = slc_shim_transforms_answer(t, "keeping a call", append(t, &taken));
    if (!slc_shim_has_failed(*result)) {
        if (slc_shim_group_hold(call, t, result)) return true;
        t->next = NULL;
        *result = slc_shim_compress_send(t);
    } else if (t->taken_count) {
        return true; /* of a group that goes on */
    }
    slc_shim_transforms_forget_taken(t);
    return true;
}

/* ---- Communicators ---- */

/* Communicators that were aborted while a thread was in a call on them, or while their work was not finished. */
static _Atomic(slc_shim_transformed *) abandoned;

static void abandon(slc_shim_transformed *t)
{
    t->next_abandoned = abandoned;
    while (!atomic_compare_exchange_weak(&abandoned, &t->next_abandoned, t)) continue;
}

/* Gives back what an abandoned communicator has, in its GPU's context; false: it is still in use. The struct itself is
 * never freed, because the program may call with the communicator until the end. */
static bool give_back(slc_shim_transformed *t)
{
    if (t->busy || (t->was_used && slc_shim_cu()->EventQuery(t->used) == SLC_SHIM_CU_NOT_READY)) return false;
    slc_shim_staging_give(&t->share);
    if (t->event) slc_shim_cu()->EventDestroy(t->event);
    if (t->used) slc_shim_cu()->EventDestroy(t->used);
    free(t->residues);
    free(t->taken);
    return true;
}

static void look_after_abandoned(void)
{
    slc_shim_transformed *next;
    for (slc_shim_transformed *t = atomic_exchange(&abandoned, NULL); t; t = next) {
        next = t->next_abandoned;
        bool given = false;
        if (!slc_shim_gpu_enter(t->gpu)) {
            given = give_back(t);
            slc_shim_gpu_leave();
        }
        if (!given) abandon(t);
    }
}

static sluice_status allocate(slc_shim_transformed *t)
{
    sluice_status status =
        slc_shim_cu_status(slc_shim_cu()->EventCreate(&t->event, SLC_SHIM_CU_NO_TIMES), "cuEventCreate");
    if (!status)
        status = slc_shim_cu_status(slc_shim_cu()->EventCreate(&t->used, SLC_SHIM_CU_NO_TIMES), "cuEventCreate");
    if (status) return status;
    if (slc_shim_transforms_asked()->compress) {
        t->residues = calloc(1, sizeof *t->residues);
        if (!t->residues) return slc_error(SLUICE_ERR_MEMORY, "the list of errors");
    }
    return slc_shim_staging_take(t->gpu, slc_shim_transforms_asked()->staging, &t->share);
}

static void free_transformed(slc_shim_transformed *t)
{
    if (t->gpu) {
        if (slc_shim_gpu_enter(t->gpu)) return; /* the context is gone, and the list of shares has this one */
        slc_shim_staging_give(&t->share);
        slc_shim_staging_free_unused(t->gpu);
        if (t->question.own_memory) slc_shim_cu()->MemFree(t->question.own_memory);
        if (t->event) slc_shim_cu()->EventDestroy(t->event);
        if (t->used) slc_shim_cu()->EventDestroy(t->used);
        slc_shim_gpu_leave();
    }
    free(t->residues);
    free(t->taken);
    free(t);
}

/* Takes what a communicator needs. If not all is there, this rank can still tell the others so, if it has t->gpu. */
static sluice_status prepare(slc_shim_transformed *t)
{
    sluice_status status = slc_shim_gpu_open(t->comm->row->device, &t->gpu);
    if (status || slc_shim_transforms_asked()->unusable) return status;
    status = slc_shim_gpu_enter(t->gpu);
    if (status) return status;
    status = allocate(t);
    slc_shim_gpu_leave();
    return status;
}

/* Makes what transforms need of a communicator. If it returns NULL, the other ranks will wait for this one, and a line
 * has said so. */
static slc_shim_transformed *create(slc_shim_recorder *recorder, slc_shim_comm *comm)
{
    slc_shim_transformed *t = calloc(1, sizeof *t);
    if (!t) return NULL;
    t->comm = comm, t->recorder = recorder, t->refused = NO_REASON;
    t->rank = (unsigned)comm->row->rank, t->ranks = (unsigned)comm->row->size;
    if (comm->nonblocking || comm->shares) {
        t->refused = SLC_RECORD_PASS_NONBLOCKING;
        return t;
    }
    sluice_status status = prepare(t);
    if (status || slc_shim_transforms_asked()->unusable) t->refused = SLC_RECORD_PASS_SETTINGS;
    if (status) slc_log(SLC_LOG_WARN, "fusing and compressing are off: %s", sluice_last_error());
    if (t->gpu) return t;
    free_transformed(t);
    return NULL;
}

/* Tells what a communicator does, once the ranks have agreed. */
static void begin_transforming(slc_shim_transformed *t)
{
    const slc_shim_transforms_settings *s = slc_shim_transforms_asked();
    if (t->refused >= 0) return;
    t->memory = t->share.memory;
    t->staging_bytes =
        s->compress ? t->share.bytes / 4 / SLC_SHIM_STAGING_UNIT * SLC_SHIM_STAGING_UNIT : t->share.bytes;
    if (t->residues) t->residues->limit = t->share.bytes - t->staging_bytes;
    t->comm->row->transforms = (s->fuse ? 1u : 0u) | (s->compress ? 2u : 0u);
}

static void created(slc_shim_recorder *recorder, slc_shim_comm *first)
{
    slc_shim_transformed *list = NULL, **end = &list;
    look_after_abandoned();
    for (slc_shim_comm *comm = first; comm; comm = comm->next) {
        if (comm->row->size < 2) continue;
        slc_shim_transformed *t = create(recorder, comm);
        comm->transforms = t;
        if (!t || t->refused == SLC_RECORD_PASS_NONBLOCKING) continue;
        *end = t, end = &t->next;
    }
    if (list) slc_shim_transforms_agree(list);
    for (slc_shim_transformed *t = list; t; t = t->next) begin_transforming(t);
}

static void window_made(slc_shim_comm *comm)
{
    slc_shim_transformed *t = comm->transforms;
    if (t) t->has_window = true;
}

static void ended(slc_shim_comm *comm, bool aborted)
{
    slc_shim_transformed *t = comm->transforms;
    if (!t) return;
    if (aborted || t->busy || t->is_abandoned) { /* another thread may be in a call, or its group has taken calls */
        t->refused = SLC_RECORD_PASS_BROKEN;
        if (!atomic_exchange(&t->is_abandoned, true) && t->gpu) abandon(t);
        return;
    }
    comm->transforms = NULL;
    if (t->was_used && !slc_shim_gpu_enter(t->gpu)) {
        slc_shim_cu()->EventSynchronize(t->used);
        slc_shim_gpu_leave();
    }
    free_transformed(t);
}

void slc_shim_transforms_child(void)
{
    slc_shim_group_child();
    slc_shim_staging_child();
    slc_shim_gpu_child();
    atomic_store(&abandoned, NULL);
}

const slc_shim_transforms *slc_shim_transforms_open(slc_shim_recorder *recorder)
{
    static const slc_shim_transforms transforms = {.created = created,
                                                   .take = take,
                                                   .redop_destroyed = slc_shim_group_hold_destroy,
                                                   .group_end = slc_shim_group_end,
                                                   .group_ended = slc_shim_group_ended,
                                                   .group_is_simulated = slc_shim_group_is_simulated,
                                                   .ended = ended,
                                                   .window_made = window_made};
    const slc_shim_transforms_settings *s = slc_shim_transforms_read();
    slc_record_header *header = recorder->header;
    if (!s->unusable && !s->fuse && !s->compress) return NULL;
    if (!s->unusable)
        header->fuse_bytes = s->fuse, header->compress_bytes = s->compress, header->staging_limit = s->staging;
    return &transforms;
}
