/* Fusing: the small all-reduces of a group that have the same type and operator are gathered into the memory, reduced
 * at once and scattered. It all happens in the stream of the group's first taken call, which the others' streams wait
 * for, as NCCL itself makes the streams of a group one. tests/nccl/on_the_bed.py covers this file. */
#include "plugins/nccl/shim/transforms/state.h"

#include "lib/base/integer.h"
#include "plugins/nccl/shim/entry.h"

static bool belongs(const slc_shim_taken *first, const slc_shim_taken *call)
{
    return !call->compress && !call->done && call->type == first->type && call->op == first->op;
}

static uint64_t piece_bytes(const slc_shim_taken *call)
{
    return slc_round_up(call->bytes, SHIM_PIECE_UNIT);
}

/* Counts the calls that go with the one of this index into the memory from `begin` on, and gives places to them if
 * `assign`; *end is where they end. */
static size_t fill_batch(slc_shim_transformed *t, size_t first, uint64_t begin, bool assign, uint64_t *end)
{
    size_t count = 0;
    *end = begin;
    for (size_t i = first; i < t->taken_count; i++) {
        slc_shim_taken *call = &t->taken[i];
        if (!belongs(&t->taken[first], call) || piece_bytes(call) > t->staging_bytes - *end) continue;
        if (assign) call->place = *end, call->fused = true;
        *end += piece_bytes(call), count++;
    }
    return count;
}

/* Plans one batch; *used is the end of what the batches have of the memory. A call that is alone, or that does not fit,
 * will be called as it is. */
static void plan_batch(slc_shim_transformed *t, size_t first, uint64_t *used)
{
    slc_shim_taken *call = &t->taken[first];
    uint64_t end;
    const bool fits = piece_bytes(call) <= t->staging_bytes - *used;
    const size_t count = fits ? fill_batch(t, first, *used, false, &end) : 0;
    if (count < 2) {
        call->done = true;
        slc_shim_transforms_count_passed(t, fits ? SLC_RECORD_PASS_ALONE : SLC_RECORD_PASS_STAGING, call->bytes);
        return;
    }
    fill_batch(t, first, *used, true, &end);
    call->batch_bytes = end - *used;
    *used = end;
    for (size_t i = first; i < t->taken_count; i++) t->taken[i].done = t->taken[i].done || t->taken[i].fused;
    slc_shim_row_add(&t->comm->row->fused_calls, count);
    slc_shim_row_add(&t->comm->row->fused_groups, 1);
}

static sluice_status launch_pieces(slc_shim_transformed *t, slc_shim_kernel kernel, slc_shim_pieces *pieces,
                                   uint32_t count, uint32_t longest, cudaStream_t stream)
{
    const slc_shim_launch launch = {.kernel = kernel,
                                    .blocks = count,
                                    .slices = slc_shim_slices(longest),
                                    .threads = SHIM_PIECE_THREADS,
                                    .arguments = pieces};
    return count ? slc_shim_gpu_launch(t->gpu, stream, &launch) : SLUICE_OK;
}

/* Copies all that is fused into the memory or, with SLC_SHIM_SCATTER, from it. */
static sluice_status move_pieces(slc_shim_transformed *t, slc_shim_kernel kernel, cudaStream_t stream)
{
    slc_shim_pieces pieces = {.staging = (unsigned char *)(uintptr_t)t->memory};
    uint32_t count = 0, longest = 0;
    sluice_status status = SLUICE_OK;
    for (size_t i = 0; !status && i < t->taken_count; i++) {
        const slc_shim_taken *call = &t->taken[i];
        if (!call->fused) continue;
        unsigned char *at = kernel == SLC_SHIM_SCATTER ? call->receive : (unsigned char *)(uintptr_t)call->send;
        pieces.piece[count++] = (slc_shim_piece){at, (uint32_t)call->bytes, (uint32_t)(call->place / SHIM_PIECE_UNIT)};
        if (call->bytes > longest) longest = (uint32_t)call->bytes;
        if (count < SHIM_PIECES) continue;
        status = launch_pieces(t, kernel, &pieces, count, longest, stream);
        count = longest = 0;
    }
    return status ? status : launch_pieces(t, kernel, &pieces, count, longest, stream);
}

ncclResult_t slc_shim_fuse_call(slc_shim_transformed *t, slc_shim_taken *call)
{
    const slc_shim_real *real = t->comm->real;
    if (call->compress) return ncclSuccess;
    if (!call->fused)
        return real->AllReduce(call->send, call->receive, call->count, call->type, call->op, t->comm->comm,
                               call->stream);
    slc_shim_entry_mark(t->recorder, call->entry, SLC_RECORD_FUSED);
    if (!call->batch_bytes) return ncclSuccess; /* it goes with an earlier one */
    void *at = (void *)(uintptr_t)(t->memory + call->place);
    const uint64_t count = call->batch_bytes / (call->bytes / call->count);
    return slc_shim_transforms_nccl_answer(
        t, "fusing", real->AllReduce(at, at, count, call->type, call->op, t->comm->comm, t->taken[0].stream));
}

static ncclResult_t move(slc_shim_transformed *t, slc_shim_kernel kernel)
{
    cudaStream_t lead;
    bool any = false;
    for (size_t i = 0; i < t->taken_count; i++) any = any || t->taken[i].fused;
    if (!any) return ncclSuccess;
    sluice_status status = slc_shim_transforms_enter(t, &lead);
    if (status) return slc_shim_transforms_answer(t, "fusing", status);
    ncclResult_t result = slc_shim_transforms_answer(t, "fusing", move_pieces(t, kernel, lead));
    return slc_shim_worse(result, slc_shim_transforms_answer(t, "fusing", slc_shim_transforms_leave(t, lead)));
}

ncclResult_t slc_shim_fuse_gather(slc_shim_transformed *t)
{
    uint64_t used = 0;
    for (size_t i = 0; i < t->taken_count; i++)
        if (!t->taken[i].compress && !t->taken[i].done) plan_batch(t, i, &used);
    slc_shim_transforms_note_staging(t, used);
    return move(t, SLC_SHIM_GATHER);
}

ncclResult_t slc_shim_fuse_scatter(slc_shim_transformed *t)
{
    return move(t, SLC_SHIM_SCATTER);
}
