/* Which calls are changed, and when. A call is taken by what all ranks know alike: its operation, count, type and
 * operator, the settings, whether its stream is captured and its memory registered, which NCCL wants to be the same on
 * all ranks. Addresses and streams decide nothing. */
#include "plugins/nccl_shim/transforms/state.h"

#include "lib/base/log.h"
#include "lib/base/parse_quantity.h"
#include "lib/base/status.h"
#include "plugins/nccl_shim/settings.h"
#include "plugins/nccl_shim/transforms/memory.h"

#include <stdlib.h>
#include <string.h>

enum { LEAST_STAGING = 4096, MOST_FUSED = 1 << 30, NO_REASON = -1 };

slc_transforms_settings slc_transforms_asked;

/* ---- Answers and counts ---- */

ncclResult_t slc_transforms_answer(slc_transformed *t, const char *transform, sluice_status status)
{
    if (!status) return ncclSuccess;
    slc_log(SLC_LOG_ERROR, "%s failed on rank %u of %u: %s; this communicator's later calls pass unchanged", transform,
            t->rank, t->ranks, sluice_last_error());
    t->refused = SLC_RECORD_PASS_BROKEN;
    return ncclUnhandledCudaError;
}

ncclResult_t slc_transforms_nccl_answer(slc_transformed *t, const char *transform, ncclResult_t result)
{
    if (!slc_has_failed(result)) return result;
    slc_log(SLC_LOG_ERROR,
            "%s failed on rank %u of %u: NCCL answered %s; this communicator's later calls pass unchanged", transform,
            t->rank, t->ranks, t->comm->real->GetErrorString(result));
    t->refused = SLC_RECORD_PASS_BROKEN;
    return result;
}

void slc_transforms_count_passed(slc_transformed *t, slc_record_pass_reason reason, uint64_t bytes)
{
    slc_record_communicator *row = t->comm->row;
    __atomic_store_n(&row->passed[reason], row->passed[reason] + 1, __ATOMIC_RELAXED);
    slc_row_add(&row->bytes_passed, bytes);
}

/* ---- Streams ---- */

static sluice_status wait_for_stream(slc_transformed *t, cudaStream_t waiting, cudaStream_t other)
{
    sluice_status status = slc_cu_status(slc_cu.EventRecord(t->event, other), "cuEventRecord");
    return status ? status : slc_cu_status(slc_cu.StreamWaitEvent(waiting, t->event, 0), "cuStreamWaitEvent");
}

sluice_status slc_transforms_enter(slc_transformed *t, cudaStream_t *lead)
{
    *lead = t->taken[0].stream;
    sluice_status status = slc_shim_gpu_enter(t->gpu);
    if (status) return status;
    for (size_t i = 1; !status && i < t->taken_count; i++)
        if (t->taken[i].stream != t->taken[i - 1].stream && t->taken[i].stream != *lead)
            status = wait_for_stream(t, *lead, t->taken[i].stream);
    if (!status && t->was_used && t->last != *lead)
        status = slc_cu_status(slc_cu.StreamWaitEvent(*lead, t->used, 0), "cuStreamWaitEvent");
    if (status) slc_shim_gpu_leave();
    return status;
}

sluice_status slc_transforms_leave(slc_transformed *t, cudaStream_t lead)
{
    sluice_status status = slc_cu_status(slc_cu.EventRecord(t->used, lead), "cuEventRecord");
    t->was_used = true, t->last = lead;
    for (size_t i = 1; !status && i < t->taken_count; i++)
        if (t->taken[i].stream != t->taken[i - 1].stream && t->taken[i].stream != lead)
            status = slc_cu_status(slc_cu.StreamWaitEvent(t->taken[i].stream, t->used, 0), "cuStreamWaitEvent");
    slc_shim_gpu_leave();
    return status;
}

/* ---- Taking calls ---- */

static uint64_t type_bytes(ncclDataType_t type)
{
    static const uint8_t bytes[ncclNumTypes] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
    return (unsigned)type < ncclNumTypes ? bytes[type] : 0;
}

/* A stream that cannot be asked may be captured: the legacy one, while another is. */
static bool is_captured(const slc_transformed *t, cudaStream_t stream)
{
    int status = 0;
    if (slc_shim_gpu_enter(t->gpu)) return true;
    const bool failed = slc_cu.StreamIsCapturing(stream, &status) != 0;
    slc_shim_gpu_leave();
    return failed || status != 0;
}

/* Says which transform a call is for, by its kind and size; else returns a reason to pass. */
static int choose(slc_transformed *t, const slc_shim_call *call, slc_taken *taken)
{
    const slc_transforms_settings *s = &slc_transforms_asked;
    if (call->operation != SLC_RECORD_ALL_REDUCE || call->redop >= ncclNumOps || !type_bytes(taken->type))
        return SLC_RECORD_PASS_KIND;
    if (!call->count || !call->send || !call->receive) return SLC_RECORD_PASS_SIZE;
    if (s->fuse && taken->bytes <= s->fuse && call->thread->depth) return NO_REASON;
    if (!s->compress || taken->bytes <= s->compress)
        return s->fuse && taken->bytes <= s->fuse ? SLC_RECORD_PASS_ALONE : SLC_RECORD_PASS_SIZE;
    if (taken->type != ncclFloat32 || (taken->op != ncclSum && taken->op != ncclAvg)) return SLC_RECORD_PASS_KIND;
    taken->compress = true;
    if (!slc_compress_fits(t, taken->count)) return SLC_RECORD_PASS_STAGING;
    return t->compressible++ < s->compress_after ? SLC_RECORD_PASS_WARMING : NO_REASON;
}

static int reason_to_pass(slc_transformed *t, const slc_shim_call *call, slc_taken *taken)
{
    if (t->refused >= 0) return t->refused;
    const int reason = choose(t, call, taken);
    if (reason != NO_REASON) return reason;
    if (slc_memory_is_known(call->send, taken->bytes) || slc_memory_is_known(call->receive, taken->bytes))
        return SLC_RECORD_PASS_REGISTERED;
    return is_captured(t, call->stream) ? SLC_RECORD_PASS_CAPTURED : NO_REASON;
}

static sluice_status append(slc_transformed *t, const slc_taken *taken)
{
    if (t->taken_count == t->taken_capacity) {
        const size_t capacity = t->taken_capacity ? 2 * t->taken_capacity : 64;
        slc_taken *larger = realloc(t->taken, capacity * sizeof *larger);
        if (!larger) return slc_error(SLUICE_ERR_MEMORY, "the calls of a group");
        t->taken = larger, t->taken_capacity = capacity;
    }
    t->taken[t->taken_count++] = *taken;
    return SLUICE_OK;
}

static bool take(slc_shim_call *call, ncclResult_t *result)
{
    slc_transformed *t = call->known ? call->known->transforms : NULL;
    slc_taken taken = {.send = call->send,
                       .receive = call->receive,
                       .count = call->count,
                       .bytes = call->count * type_bytes((ncclDataType_t)call->type),
                       .type = (ncclDataType_t)call->type,
                       .op = (ncclRedOp_t)call->redop,
                       .stream = call->stream,
                       .entry = call->entry};
    if (!t) return slc_group_hold(call, NULL, result);
    const int reason = reason_to_pass(t, call, &taken);
    if (reason != NO_REASON) {
        slc_transforms_count_passed(t, (slc_record_pass_reason)reason, taken.bytes);
        return slc_group_hold(call, NULL, result);
    }
    *result = slc_transforms_answer(t, "keeping a call", append(t, &taken));
    if (slc_has_failed(*result) || slc_group_hold(call, t, result)) return true;
    t->next = NULL;
    *result = slc_compress_send(t);
    t->taken_count = 0;
    return true;
}

/* ---- Communicators ---- */

static sluice_status allocate(slc_transformed *t)
{
    const slc_transforms_settings *s = &slc_transforms_asked;
    sluice_status status = slc_cu_status(slc_cu.EventCreate(&t->event, SLC_CU_NO_TIMES), "cuEventCreate");
    if (!status) status = slc_cu_status(slc_cu.EventCreate(&t->used, SLC_CU_NO_TIMES), "cuEventCreate");
    if (status) return status;
    if (s->compress) {
        t->residues = calloc(1, sizeof *t->residues);
        if (!t->residues) return slc_error(SLUICE_ERR_MEMORY, "the list of errors");
    }
    t->staging_bytes = s->compress ? s->staging / 4 / 4096 * 4096 : s->staging;
    if (t->residues) t->residues->limit = s->staging - t->staging_bytes;
    if (!slc_cu.MemAlloc(&t->memory, s->staging)) return SLUICE_OK;
    t->refused = SLC_RECORD_PASS_STAGING;
    return slc_cu_status(slc_cu.MemAlloc(&t->memory, sizeof t->words), "cuMemAlloc");
}

static void free_transformed(slc_transformed *t)
{
    if (t->gpu && !slc_shim_gpu_enter(t->gpu)) {
        if (t->memory) slc_cu.MemFree(t->memory);
        if (t->event) slc_cu.EventDestroy(t->event);
        if (t->used) slc_cu.EventDestroy(t->used);
        slc_shim_gpu_leave();
    }
    free(t->residues);
    free(t->taken);
    free(t);
}

static sluice_status open_gpu(slc_transformed *t)
{
    sluice_status status = slc_shim_gpu_open(t->comm->row->device, &t->gpu);
    if (status) return status;
    status = slc_shim_gpu_enter(t->gpu);
    if (status) return status;
    status = allocate(t);
    slc_shim_gpu_leave();
    return status;
}

/* Makes what a communicator needs. NULL where it can have no transforms, which was then said. */
static slc_transformed *create(slc_recorder *recorder, slc_shim_comm *comm)
{
    slc_transformed *t = calloc(1, sizeof *t);
    if (!t) return NULL;
    t->comm = comm, t->recorder = recorder, t->refused = NO_REASON;
    t->rank = (unsigned)comm->row->rank, t->ranks = (unsigned)comm->row->size;
    if (comm->nonblocking || comm->shares) {
        t->refused = SLC_RECORD_PASS_NONBLOCKING;
        return t;
    }
    if (!open_gpu(t)) return t;
    slc_log(SLC_LOG_WARN, "fusing and compressing are off: %s", sluice_last_error());
    free_transformed(t);
    return NULL;
}

static void created(slc_recorder *recorder, slc_shim_comm *first)
{
    slc_transformed *list = NULL, **end = &list;
    for (slc_shim_comm *comm = first; comm; comm = comm->next) {
        if (comm->row->size < 2) continue;
        slc_transformed *t = create(recorder, comm);
        comm->transforms = t;
        if (!t || t->refused == SLC_RECORD_PASS_NONBLOCKING) continue;
        *end = t, end = &t->next;
    }
    if (list) slc_transforms_agree(list);
    for (slc_transformed *t = list; t; t = t->next)
        if (t->refused < 0)
            t->comm->row->transforms =
                (slc_transforms_asked.fuse ? 1u : 0u) | (slc_transforms_asked.compress ? 2u : 0u);
}

static void ended(slc_shim_comm *comm, bool aborted)
{
    slc_transformed *t = comm->transforms;
    if (!t) return;
    if (aborted) { /* another thread may be in a call; its memory stays until the process ends */
        t->refused = SLC_RECORD_PASS_BROKEN;
        return;
    }
    comm->transforms = NULL;
    if (t->was_used && !slc_shim_gpu_enter(t->gpu)) {
        slc_cu.EventSynchronize(t->used);
        slc_shim_gpu_leave();
    }
    free_transformed(t);
}

/* ---- Settings ---- */

static bool read_bytes(const char *name, uint64_t *out)
{
    if (!slc_parse_bytes(slc_setting_text(&slc_nccl_shim_settings, name), out)) return true;
    slc_log(SLC_LOG_ERROR, "%s: %s; fusing and compressing are off", name, sluice_last_error());
    return false;
}

const slc_transforms *slc_transforms_open(slc_recorder *recorder)
{
    static const slc_transforms transforms = {.created = created,
                                              .take = take,
                                              .group_end = slc_group_end,
                                              .group_ended = slc_group_ended,
                                              .group_is_simulated = slc_group_is_simulated,
                                              .ended = ended,
                                              .memory_known = slc_memory_add,
                                              .memory_dropped = slc_memory_drop};
    slc_transforms_settings *s = &slc_transforms_asked;
    slc_record_header *header = recorder->header;
    if (!read_bytes("SLUICE_SHIM_FUSE", &s->fuse) || !read_bytes("SLUICE_SHIM_COMPRESS", &s->compress) ||
        !read_bytes("SLUICE_SHIM_STAGING", &s->staging))
        return NULL;
    if (!s->fuse && !s->compress) return NULL;
    if (slc_setting_count(&slc_nccl_shim_settings, "SLUICE_SHIM_COMPRESS_AFTER", &s->compress_after)) {
        slc_log(SLC_LOG_ERROR, "%s; fusing and compressing are off", sluice_last_error());
        return NULL;
    }
    if (s->staging < LEAST_STAGING) {
        slc_log(SLC_LOG_ERROR,
                "SLUICE_SHIM_STAGING=%llu is too little for fusing and compressing, which are off: give "
                "4KiB or more",
                (unsigned long long)s->staging);
        return NULL;
    }
    if (s->fuse > MOST_FUSED) {
        slc_log(SLC_LOG_ERROR, "SLUICE_SHIM_FUSE=%llu is too much; it is for small calls, of at most 1GiB",
                (unsigned long long)s->fuse);
        return NULL;
    }
    header->fuse_bytes = s->fuse, header->compress_bytes = s->compress, header->staging_limit = s->staging;
    return &transforms;
}
