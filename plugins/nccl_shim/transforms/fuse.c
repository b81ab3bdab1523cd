/* Fusing: the small all-reduces of a group that have the same type and operator are gathered into the memory, reduced
 * at once and scattered. It all happens in the stream of the group's first taken call, which the others' streams wait
 * for, as NCCL itself makes the streams of a group one. */
#include "plugins/nccl_shim/transforms/state.h"

#include "lib/base/integer.h"

#include <string.h>

/* Calls that are fused to one. */
typedef struct {
    size_t first, count; /* index of the first call, and how many there are */
    uint64_t begin, end; /* in the memory */
} batch;

static bool belongs(const slc_taken *first, const slc_taken *call)
{
    return !call->compress && !call->done && call->type == first->type && call->op == first->op;
}

/* Gives places to the calls that go with the one of this index, from `begin` on; the first is in the batch even where
 * it does not fit. */
static batch fill_batch(slc_transformed *t, size_t first, uint64_t begin)
{
    batch b = {first, 0, begin, begin};
    for (size_t i = first; i < t->taken_count; i++) {
        slc_taken *call = &t->taken[i];
        const uint64_t bytes = slc_round_up(call->bytes, SHIM_PIECE_UNIT);
        if (!belongs(&t->taken[first], call) || bytes > t->staging_bytes - b.end) continue;
        call->place = b.end, call->fused = true;
        b.end += bytes, b.count++;
    }
    return b;
}

static sluice_status launch_pieces(slc_transformed *t, slc_shim_kernel kernel, slc_shim_pieces *pieces, uint32_t count,
                                   uint32_t longest, cudaStream_t stream)
{
    const slc_shim_launch launch = {.kernel = kernel,
                                    .blocks = count,
                                    .slices = (longest + SHIM_PIECE_SLICE - 1) / SHIM_PIECE_SLICE,
                                    .threads = SHIM_PIECE_THREADS,
                                    .arguments = pieces};
    return count ? slc_shim_gpu_launch(t->gpu, stream, &launch) : SLUICE_OK;
}

/* Copies the fused calls that are not `done` into the memory, or those that are from it. */
static sluice_status move_pieces(slc_transformed *t, bool done, cudaStream_t stream)
{
    const slc_shim_kernel kernel = done ? SLC_SHIM_SCATTER : SLC_SHIM_GATHER;
    slc_shim_pieces pieces = {.staging = (unsigned char *)(uintptr_t)t->memory};
    uint32_t count = 0, longest = 0;
    sluice_status status = SLUICE_OK;
    for (size_t i = 0; !status && i < t->taken_count; i++) {
        const slc_taken *call = &t->taken[i];
        if (!call->fused || call->done != done) continue;
        unsigned char *at = done ? call->receive : (unsigned char *)(uintptr_t)call->send;
        pieces.piece[count++] = (slc_shim_piece){at, (uint32_t)call->bytes, (uint32_t)(call->place / SHIM_PIECE_UNIT)};
        if (call->bytes > longest) longest = (uint32_t)call->bytes;
        if (count < SHIM_PIECES) continue;
        status = launch_pieces(t, kernel, &pieces, count, longest, stream);
        count = longest = 0;
    }
    return status ? status : launch_pieces(t, kernel, &pieces, count, longest, stream);
}

static ncclResult_t reduce_batch(slc_transformed *t, const batch *b, cudaStream_t stream)
{
    slc_taken *first = &t->taken[b->first];
    const uint64_t element = first->bytes / first->count;
    void *at = (void *)(uintptr_t)(t->memory + b->begin);
    slc_record_communicator *row = t->comm->row;
    slc_row_add(&row->fused_calls, b->count);
    slc_row_add(&row->fused_groups, 1);
    for (size_t i = b->first; i < t->taken_count; i++) {
        slc_taken *call = &t->taken[i];
        if (!call->fused || call->done) continue;
        call->done = true;
        slc_entry_mark(t->recorder, call->entry, SLC_RECORD_FUSED);
    }
    return t->comm->real->AllReduce(at, at, (b->end - b->begin) / element, first->type, first->op, t->comm->comm,
                                    stream);
}

/* Sends one batch; returns the end of what it has used of the memory. */
static ncclResult_t send_batch(slc_transformed *t, size_t first, cudaStream_t stream, uint64_t *used)
{
    slc_taken *call = &t->taken[first];
    const batch b = fill_batch(t, first, *used);
    if (b.count < 2 || !call->fused) {
        for (size_t i = first; i < t->taken_count; i++)
            if (!t->taken[i].done) t->taken[i].fused = false;
        const bool fits = slc_round_up(call->bytes, SHIM_PIECE_UNIT) <= t->staging_bytes - *used;
        return slc_transforms_pass(t, call, fits ? SLC_RECORD_PASS_ALONE : SLC_RECORD_PASS_STAGING);
    }
    sluice_status status = move_pieces(t, false, stream);
    if (status) return slc_transforms_answer(t, "fusing", status);
    *used = b.end;
    return slc_transforms_nccl_answer(t, "fusing", reduce_batch(t, &b, stream));
}

static void note_peak(slc_transformed *t, uint64_t used)
{
    uint64_t *peak = &t->recorder->header->staging_peak;
    if (used > *peak) __atomic_store_n(peak, used, __ATOMIC_RELAXED);
}

ncclResult_t slc_fuse_gather(slc_transformed *t)
{
    cudaStream_t lead;
    ncclResult_t result = slc_transforms_answer(t, "fusing", slc_transforms_enter(t, &lead));
    if (slc_has_failed(result)) return result;
    uint64_t used = 0;
    for (size_t i = 0; !slc_has_failed(result) && i < t->taken_count; i++)
        if (!t->taken[i].compress && !t->taken[i].done) result = send_batch(t, i, lead, &used);
    note_peak(t, used);
    return slc_worse(result, slc_transforms_answer(t, "fusing", slc_transforms_leave(t, lead)));
}

ncclResult_t slc_fuse_scatter(slc_transformed *t)
{
    cudaStream_t lead;
    ncclResult_t result = slc_transforms_answer(t, "fusing", slc_transforms_enter(t, &lead));
    if (slc_has_failed(result)) return result;
    result = slc_transforms_answer(t, "fusing", move_pieces(t, true, lead));
    return slc_worse(result, slc_transforms_answer(t, "fusing", slc_transforms_leave(t, lead)));
}
