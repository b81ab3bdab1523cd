/* Every kind of transform takes and leaves its communicator's GPU, counts, and answers by these functions.
 * tests/nccl/on_the_bed.py covers this file. */
#include "plugins/nccl/shim/transforms/state.h"

#include "lib/base/log.h"

/* ---- Answers and counts ---- */

ncclResult_t slc_shim_transforms_answer(slc_shim_transformed *t, const char *transform, sluice_status status)
{
    if (!status) return ncclSuccess;
    slc_log(SLC_LOG_ERROR, "%s failed on rank %u of %u: %s; this communicator's later calls pass unchanged", transform,
            t->rank, t->ranks, sluice_last_error());
    t->refused = SLC_RECORD_PASS_BROKEN;
    return ncclUnhandledCudaError;
}

ncclResult_t slc_shim_transforms_nccl_answer(slc_shim_transformed *t, const char *transform, ncclResult_t result)
{
    if (!slc_shim_has_failed(result)) return result;
    slc_log(SLC_LOG_ERROR,
            "%s failed on rank %u of %u: NCCL answered %s; this communicator's later calls pass unchanged", transform,
            t->rank, t->ranks, t->comm->real->GetErrorString(result));
    t->refused = SLC_RECORD_PASS_BROKEN;
    return result;
}

void slc_shim_transforms_count_passed(slc_shim_transformed *t, slc_record_pass_reason reason, uint64_t bytes)
{
    slc_record_communicator *row = t->comm->row;
    __atomic_store_n(&row->passed[reason], row->passed[reason] + 1, __ATOMIC_RELAXED);
    slc_shim_row_add(&row->bytes_passed, bytes);
}

void slc_shim_transforms_note_staging(slc_shim_transformed *t, uint64_t used)
{
    const uint64_t together = slc_shim_staging_note(&t->share, used + (t->residues ? t->residues->peak : 0));
    uint64_t *most = &t->recorder->header->staging_peak, peak = __atomic_load_n(most, __ATOMIC_RELAXED);
    while (together > peak)
        if (__atomic_compare_exchange_n(most, &peak, together, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) break;
}

/* ---- Streams ---- */

static sluice_status wait_for_stream(slc_shim_transformed *t, cudaStream_t waiting, cudaStream_t other)
{
    sluice_status status = slc_shim_cu_status(slc_shim_cu()->EventRecord(t->event, other), "cuEventRecord");
    return status ? status
                  : slc_shim_cu_status(slc_shim_cu()->StreamWaitEvent(waiting, t->event, 0), "cuStreamWaitEvent");
}

sluice_status slc_shim_transforms_enter(slc_shim_transformed *t, cudaStream_t *lead)
{
    *lead = t->taken[0].stream;
    sluice_status status = slc_shim_gpu_enter(t->gpu);
    if (status) return status;
    for (size_t i = 1; !status && i < t->taken_count; i++)
        if (t->taken[i].stream != t->taken[i - 1].stream && t->taken[i].stream != *lead)
            status = wait_for_stream(t, *lead, t->taken[i].stream);
    if (!status && t->was_used) /* a stream may have the number of another thread's, or of one that is gone */
        status = slc_shim_cu_status(slc_shim_cu()->StreamWaitEvent(*lead, t->used, 0), "cuStreamWaitEvent");
    if (status) slc_shim_gpu_leave();
    return status;
}

sluice_status slc_shim_transforms_leave(slc_shim_transformed *t, cudaStream_t lead)
{
    sluice_status status = slc_shim_cu_status(slc_shim_cu()->EventRecord(t->used, lead), "cuEventRecord");
    t->was_used = true;
    for (size_t i = 1; !status && i < t->taken_count; i++)
        if (t->taken[i].stream != t->taken[i - 1].stream && t->taken[i].stream != lead)
            status =
                slc_shim_cu_status(slc_shim_cu()->StreamWaitEvent(t->taken[i].stream, t->used, 0), "cuStreamWaitEvent");
    slc_shim_gpu_leave();
    return status;
}

void slc_shim_transforms_forget_taken(slc_shim_transformed *t)
{
    t->taken_count = 0;
    t->busy = false;
}
