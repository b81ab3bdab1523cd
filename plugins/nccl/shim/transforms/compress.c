/* Compressing: an element is sent as one bit, and what is lost is added to the buffer's next all-reduce, by the rules
 * of lib/kernels/compress/compress.h. Each rank sends every other rank the packet of that rank's chunk, adds up its own
 * chunk, and gathers the results of all. As many calls of a communicator go at a time as the memory holds, in the
 * stream of the first one; the exchanges of several communicators of a thread, which may wait for each other, go in the
 * same groups.
 * tests/nccl/on_the_bed.py covers this file. */
#include "plugins/nccl/shim/transforms/state.h"

#include "lib/base/integer.h"
#include "lib/base/log.h"
#include "lib/kernels/compress/compress.h"
#include "plugins/nccl/shim/entry.h"

enum { SCALE_ELEMENTS = 2048, RESULT_BLOCKS_MOST = 4096 };

/* ---- Sizes ---- */

static slc_compress_cuda_shape shape_of(const slc_shim_transformed *t, uint64_t count)
{
    const slc_compress_shape shape = {count, SCALE_ELEMENTS, t->ranks};
    return (slc_compress_cuda_shape){.count = count,
                                     .chunk = slc_compress_chunk(&shape),
                                     .scales = slc_compress_scales(&shape),
                                     .stride = slc_compress_stride(&shape),
                                     .scale_elements = SCALE_ELEMENTS,
                                     .ranks = t->ranks};
}

/* An exchange's memory: the packets that this rank sends, those that arrive, and the results, one for each rank. */
static uint64_t exchange_bytes(const slc_compress_cuda_shape *s)
{
    return 3 * s->ranks * s->stride;
}

bool slc_shim_compress_fits(const slc_shim_transformed *t, uint64_t count)
{
    const slc_compress_cuda_shape shape = shape_of(t, count);
    return exchange_bytes(&shape) <= t->staging_bytes;
}

/* The offsets of the parts of a buffer's errors, from their beginning. */
typedef struct {
    uint64_t worker_scale, server_sum, server_scale, bytes;
} error_places;

static error_places places_of(const slc_compress_cuda_shape *s)
{
    error_places p;
    p.worker_scale = slc_round_up(s->ranks * s->chunk * sizeof(float), 64);
    p.server_sum = p.worker_scale + slc_round_up(s->ranks * s->scales * sizeof(float), 64);
    p.server_scale = p.server_sum + slc_round_up(s->chunk * sizeof(float), 64);
    p.bytes = p.server_scale + slc_round_up(s->scales * sizeof(float), 64);
    return p;
}

/* ---- The passes ---- */

static unsigned char *memory_at(const slc_shim_transformed *t, uint64_t place)
{
    return (unsigned char *)(uintptr_t)(t->memory + place);
}

static float *errors_at(const slc_shim_transformed *t, const slc_shim_taken *call, uint64_t place)
{
    return call->has_errors ? (float *)(void *)memory_at(t, t->staging_bytes + call->kept + place) : NULL;
}

/* Finds the errors of the call's buffer, and zeroes them if their place is new or the errors from before are to be
 * forgotten. */
static sluice_status find_errors(slc_shim_transformed *t, slc_shim_taken *call, cudaStream_t stream)
{
    const slc_compress_cuda_shape shape = shape_of(t, call->count);
    const uint64_t bytes = places_of(&shape).bytes;
    bool forget;
    call->has_errors = slc_shim_residues_find(t->residues, call->send, call->count, bytes, &call->kept, &forget);
    if (!call->has_errors) {
        static _Atomic bool warned; /* once in a process: a program may have many communicators */
        if (!atomic_exchange(&warned, true))
            slc_log(
                SLC_LOG_WARN,
                "a communicator's %llu bytes of SLUICE_SHIM_STAGING do not hold the errors of all buffers that are "
                "compressed on rank %u, so some lose them in each step: four thirds of 4 * (1 + 1 / ranks) bytes for "
                "each element that a step reduces are needed, and the first communicator gets half of the staging",
                (unsigned long long)t->share.bytes, t->rank);
        return SLUICE_OK;
    }
    if (!forget) return SLUICE_OK;
    const slc_shim_cu_address at = t->memory + t->staging_bytes + call->kept;
    return slc_shim_cu_status(slc_shim_cu()->MemsetD8Async(at, 0, bytes, stream), "cuMemsetD8Async");
}

static sluice_status run_worker(slc_shim_transformed *t, slc_shim_taken *call, cudaStream_t stream)
{
    const slc_compress_cuda_shape shape = shape_of(t, call->count);
    const error_places places = places_of(&shape);
    sluice_status status = find_errors(t, call, stream);
    if (status) return status;
    slc_shim_transforms_note_staging(t, call->place + exchange_bytes(&shape));
    const slc_compress_cuda_worker worker = {.shape = shape,
                                             .x = call->send,
                                             .sum = errors_at(t, call, 0),
                                             .scale = errors_at(t, call, places.worker_scale),
                                             .packets = memory_at(t, call->place)};
    const slc_shim_launch launch = {
        SLC_SHIM_WORKER, (uint32_t)(shape.ranks * shape.scales), 1, SLC_COMPRESS_CUDA_THREADS, SLC_COMPRESS_CUDA_SHARED,
        &worker};
    return slc_shim_gpu_launch(t->gpu, stream, &launch);
}

static sluice_status run_server(slc_shim_transformed *t, slc_shim_taken *call, cudaStream_t stream)
{
    const slc_compress_cuda_shape shape = shape_of(t, call->count);
    const error_places places = places_of(&shape);
    const uint64_t all = shape.ranks * shape.stride, own = t->rank * shape.stride;
    const slc_compress_cuda_server server = {.shape = shape,
                                             .packets = memory_at(t, call->place + all),
                                             .own = memory_at(t, call->place + own),
                                             .sum = errors_at(t, call, places.server_sum),
                                             .scale = errors_at(t, call, places.server_scale),
                                             .result = memory_at(t, call->place + 2 * all + own),
                                             .rank = t->rank};
    const slc_shim_launch launch = {SLC_SHIM_SERVER,           (uint32_t)shape.scales,   1,
                                    SLC_COMPRESS_CUDA_THREADS, SLC_COMPRESS_CUDA_SHARED, &server};
    return slc_shim_gpu_launch(t->gpu, stream, &launch);
}

static sluice_status run_results(slc_shim_transformed *t, slc_shim_taken *call, cudaStream_t stream)
{
    const slc_compress_cuda_shape shape = shape_of(t, call->count);
    const slc_compress_cuda_results results = {.shape = shape,
                                               .results = memory_at(t, call->place + 2 * shape.ranks * shape.stride),
                                               .out = call->receive,
                                               .factor = call->op == ncclSum ? (float)t->ranks : 1.0f};
    const uint64_t blocks = (call->count + 8 * SLC_COMPRESS_CUDA_THREADS - 1) / (8 * SLC_COMPRESS_CUDA_THREADS);
    const slc_shim_launch launch = {
        SLC_SHIM_RESULTS, (uint32_t)slc_least(blocks, RESULT_BLOCKS_MOST), 1, SLC_COMPRESS_CUDA_THREADS, 0, &results};
    return slc_shim_gpu_launch(t->gpu, stream, &launch);
}

/* ---- What goes between the ranks ---- */

static ncclResult_t send_packets(slc_shim_transformed *t, slc_shim_taken *call, cudaStream_t stream)
{
    const slc_compress_cuda_shape s = shape_of(t, call->count);
    const slc_shim_real *real = t->comm->real;
    ncclResult_t result = ncclSuccess;
    for (uint32_t step = 1; step < s.ranks; step++) { /* each rank begins with another peer */
        const uint32_t to = (t->rank + step) % s.ranks, from = (t->rank + s.ranks - step) % s.ranks;
        unsigned char *packet = memory_at(t, call->place + to * s.stride);
        unsigned char *arrives = memory_at(t, call->place + (s.ranks + from) * s.stride);
        result = slc_shim_worse(result, real->Send(packet, s.stride, ncclInt8, (int)to, t->comm->comm, stream));
        result = slc_shim_worse(result, real->Recv(arrives, s.stride, ncclInt8, (int)from, t->comm->comm, stream));
    }
    return result;
}

static ncclResult_t gather_results(slc_shim_transformed *t, slc_shim_taken *call, cudaStream_t stream)
{
    const slc_compress_cuda_shape s = shape_of(t, call->count);
    unsigned char *results = memory_at(t, call->place + 2 * s.ranks * s.stride);
    return t->comm->real->AllGather(results + t->rank * s.stride, results, s.stride, ncclInt8, t->comm->comm, stream);
}

static void count_call(slc_shim_transformed *t, slc_shim_taken *call)
{
    const slc_compress_cuda_shape s = shape_of(t, call->count);
    slc_record_communicator *row = t->comm->row;
    slc_shim_row_add(&row->compressed_calls, 1);
    slc_shim_row_add(&row->bytes_compressed, 2 * (s.ranks - 1) * call->bytes / s.ranks);
    slc_shim_row_add(&row->bytes_sent_compressed, 2 * (s.ranks - 1) * s.stride);
    slc_shim_entry_mark(t->recorder, call->entry, SLC_RECORD_COMPRESSED);
    call->done = true;
}

/* ---- Waves ---- */

/* A wave is those calls of one communicator that are compressed and sent at a time. A pass runs a kernel for one call
 * of a wave; traffic sends and receives what the call exchanges with other ranks. */
typedef sluice_status pass(slc_shim_transformed *t, slc_shim_taken *call, cudaStream_t stream);
typedef ncclResult_t traffic(slc_shim_transformed *t, slc_shim_taken *call, cudaStream_t stream);

static bool is_in_wave(const slc_shim_taken *call)
{
    return call->compress && !call->done && call->place != UINT64_MAX;
}

/* Gives places to as many calls as fit; returns the bytes that they take. */
static uint64_t plan_wave(slc_shim_transformed *t)
{
    uint64_t used = 0;
    bool full = false;
    for (size_t i = 0; i < t->taken_count; i++) {
        slc_shim_taken *call = &t->taken[i];
        if (!call->compress || call->done) continue;
        const slc_compress_cuda_shape shape = shape_of(t, call->count);
        const uint64_t bytes = exchange_bytes(&shape);
        full = full || bytes > t->staging_bytes - used;
        call->place = full ? UINT64_MAX : used;
        if (!full) used += bytes;
    }
    return used;
}

/* Runs kernels for a communicator's wave. */
static ncclResult_t run_pass(slc_shim_transformed *t, pass *kernel)
{
    cudaStream_t lead;
    ncclResult_t result = slc_shim_transforms_answer(t, "compressing", slc_shim_transforms_enter(t, &lead));
    if (slc_shim_has_failed(result)) return result;
    for (size_t i = 0; !slc_shim_has_failed(result) && i < t->taken_count; i++)
        if (is_in_wave(&t->taken[i]))
            result = slc_shim_transforms_answer(t, "compressing", kernel(t, &t->taken[i], lead));
    return slc_shim_worse(result, slc_shim_transforms_answer(t, "compressing", slc_shim_transforms_leave(t, lead)));
}

/* Runs one kind of traffic for the waves of all communicators of a library, in one group. */
static ncclResult_t run_traffic(slc_shim_transformed *list, const slc_shim_real *real, traffic *talk)
{
    ncclResult_t result = real->GroupStart();
    if (slc_shim_has_failed(result)) return result;
    for (slc_shim_transformed *t = list; t; t = t->next)
        for (size_t i = 0; t->comm->real == real && i < t->taken_count; i++)
            if (is_in_wave(&t->taken[i])) result = slc_shim_worse(result, talk(t, &t->taken[i], t->taken[0].stream));
    return slc_shim_worse(result, real->GroupEnd());
}

static ncclResult_t run_wave(slc_shim_transformed *list, const slc_shim_real *real)
{
    static pass *const passes[] = {run_worker, run_server, run_results};
    static traffic *const talks[] = {send_packets, gather_results};
    ncclResult_t result = ncclSuccess;
    for (int p = 0; p < 3; p++) {
        for (slc_shim_transformed *t = list; t; t = t->next)
            if (t->comm->real == real) result = slc_shim_worse(result, run_pass(t, passes[p]));
        if (slc_shim_has_failed(result)) return result;
        if (p < 2) result = run_traffic(list, real, talks[p]);
        if (slc_shim_has_failed(result)) return result;
    }
    for (slc_shim_transformed *t = list; t; t = t->next)
        for (size_t i = 0; t->comm->real == real && i < t->taken_count; i++)
            if (is_in_wave(&t->taken[i])) count_call(t, &t->taken[i]);
    return result;
}

/* Plans a wave of the first library that has calls left; NULL: none has. */
static const slc_shim_real *plan(slc_shim_transformed *list)
{
    const slc_shim_real *real = NULL;
    for (slc_shim_transformed *t = list; t; t = t->next)
        if ((!real || t->comm->real == real) && plan_wave(t)) real = t->comm->real;
    return real;
}

ncclResult_t slc_shim_compress_send(slc_shim_transformed *list)
{
    ncclResult_t result = ncclSuccess;
    const slc_shim_real *real;
    while (!slc_shim_has_failed(result) && (real = plan(list))) result = run_wave(list, real);
    if (slc_shim_has_failed(result))
        for (slc_shim_transformed *t = list; t; t = t->next)
            if (t->refused != SLC_RECORD_PASS_BROKEN) slc_shim_transforms_nccl_answer(t, "compressing", result);
    return result;
}
