/* A GPU as a device: segments are its memory, which no other process maps; streams and events are CUDA's. Whatever
 * fails on the GPU is reported by the next call of any thread, and by all after it, as CUDA does.
 *
 * CUDA's current GPU belongs to a thread of the host, which a program may change, so every call that needs it makes
 * ours the current one first. CUDA compares them, and does nothing if ours is the current one already. streams_test.c
 * covers this file. */
#include "lib/device/cuda.h"

#include "lib/base/status.h"
#include "lib/device/ops.h"
#include "lib/device/settings.h"

#include <stdio.h>
#include <stdlib.h>

enum { OLDEST_CAPABILITY = 80, MOVE_BYTES = 1 << 20 };

typedef struct {
    int number;
    const char *chosen_by;                  /* the variable that named it */
    uint32_t processors, processor_threads; /* processor_threads: that one holds at once */
    bool checks;                            /* SLUICE_CUDA_CHECK */
    slc_launch_watch *told;                 /* NULL: no one watches */
    void *watcher;
} gpu;

typedef struct {
    cudaStream_t stream;
    slc_pinned room; /* MOVE_BYTES for moves by less than that, made by the first of them */
} gpu_stream;

typedef struct {
    slc_event_header header;
    cudaEvent_t event;
} gpu_event;

/* The grids that this thread launched and slc_cuda_launched has not reported yet. If there are more than fit here, only
 * the first ones are reported. */
enum { MOST_GRIDS = 8 };
static _Thread_local slc_cuda_grid grids[MOST_GRIDS];
static _Thread_local uint32_t grid_count;

static sluice_status make_current(const slc_device *device)
{
    const gpu *g = device->state;
    return slc_cuda_status(cudaSetDevice(g->number), "cudaSetDevice");
}

sluice_status slc_cuda_status(cudaError_t error, const char *what)
{
    if (!error) return SLUICE_OK;
    cudaGetLastError(); /* told here: the next launch must not be blamed */
    return slc_error(error == cudaErrorMemoryAllocation ? SLUICE_ERR_MEMORY : SLUICE_ERR_SYSTEM,
                     "device \"cuda\": %s: %s", what, cudaGetErrorString(error));
}

/* ---- The device ---- */

/* Returns the name of the variable in which a launcher says which of its host's ranks this is; NULL: none did. The
 * variable of `sluice run` and torchrun comes first, then those of Open MPI, PMI and Slurm, which leak into what the
 * launchers before them start. */
static const char *find_local_rank(void)
{
    static const char *const names[] = {"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = getenv(names[i]);
        if (value && *value) return names[i];
    }
    return NULL;
}

/* Chooses the GPU: SLUICE_CUDA_DEVICE, else the launcher's local rank modulo the number of GPUs, else the first. */
static sluice_status choose(int count, gpu *out)
{
    const char *local = find_local_rank();
    unsigned number = local ? (unsigned)strtoul(getenv(local), NULL, 10) % (unsigned)count : 0;
    out->chosen_by = local ? local : "default";
    if (*slc_setting_text(&slc_device_settings, "SLUICE_CUDA_DEVICE")) {
        out->chosen_by = "SLUICE_CUDA_DEVICE";
        sluice_status status = slc_setting_count(&slc_device_settings, "SLUICE_CUDA_DEVICE", &number);
        if (status) return status;
    }
    if (number >= (unsigned)count)
        return slc_error(SLUICE_ERR_ARGUMENT, "device \"cuda\": SLUICE_CUDA_DEVICE=%u, but there are %d GPUs", number,
                         count);
    out->number = (int)number;
    return SLUICE_OK;
}

static sluice_status look_at(gpu *g)
{
    struct cudaDeviceProp properties;
    sluice_status status = slc_cuda_status(cudaSetDevice(g->number), "cudaSetDevice");
    if (status) return status;
    status = slc_cuda_status(cudaGetDeviceProperties(&properties, g->number), "cudaGetDeviceProperties");
    if (status) return status;
    g->processors = (uint32_t)properties.multiProcessorCount;
    g->processor_threads = (uint32_t)properties.maxThreadsPerMultiProcessor;
    if (properties.major * 10 + properties.minor >= OLDEST_CAPABILITY) return SLUICE_OK;
    return slc_error(SLUICE_ERR_UNSUPPORTED,
                     "device \"cuda\": %s has compute capability %d.%d; 8.0 or more is needed; use --device cpu",
                     properties.name, properties.major, properties.minor);
}

static sluice_status cuda_open(void **state)
{
    int count = 0;
    cudaError_t error = cudaGetDeviceCount(&count);
    if (error || !count) {
        cudaGetLastError(); /* it is reported here, and does not concern later calls */
        return slc_error(SLUICE_ERR_UNSUPPORTED, "device \"cuda\": no GPU on this machine (%s); use --device cpu",
                         cudaGetErrorString(error ? error : cudaErrorNoDevice));
    }
    gpu *g = calloc(1, sizeof *g);
    if (!g) return slc_error(SLUICE_ERR_MEMORY, "device \"cuda\"");
    sluice_status status = choose(count, g);
    if (!status) status = slc_setting_switch(&slc_device_settings, "SLUICE_CUDA_CHECK", &g->checks);
    if (!status) status = look_at(g);
    if (status) {
        free(g);
        return status;
    }
    *state = g;
    return SLUICE_OK;
}

static void cuda_close(void *state)
{
    free(state);
}

static sluice_status cuda_get_facts(slc_device *device, slc_device_facts *out)
{
    const gpu *g = device->state;
    struct cudaDeviceProp properties;
    size_t left, total;
    sluice_status status = make_current(device);
    if (!status) status = slc_cuda_status(cudaGetDeviceProperties(&properties, g->number), "cudaGetDeviceProperties");
    if (!status) status = slc_cuda_status(cudaMemGetInfo(&left, &total), "cudaMemGetInfo");
    if (status) return status;
    snprintf(out->name, sizeof out->name, "%s", properties.name);
    out->number = (uint32_t)g->number;
    out->capability = (uint32_t)(properties.major * 10 + properties.minor);
    out->processors = g->processors;
    out->memory_bytes = total;
    out->free_bytes = left;
    return SLUICE_OK;
}

uint32_t slc_cuda_blocks(const sluice_stream *stream)
{
    const gpu *g = stream->device->state;
    return 8 * g->processors;
}

/* ---- Memory ---- */

static sluice_status refuse_segment(const gpu *g, size_t bytes)
{
    size_t left = 0, total = 0;
    cudaGetLastError();
    cudaMemGetInfo(&left, &total);
    return slc_error(SLUICE_ERR_MEMORY,
                     "device \"cuda\": %zu bytes do not fit: %zu of %zu are free on GPU %d (chosen by %s)", bytes, left,
                     total, g->number, g->chosen_by);
}

static sluice_status cuda_segment_create(slc_device *device, size_t bytes, slc_segment *out)
{
    const size_t page = 4096, rounded = bytes > SIZE_MAX - page ? 0 : (bytes + page - 1) / page * page;
    sluice_stream stream = {.device = device, .threads = 1};
    void *base = NULL;
    if (bytes && !rounded) return slc_error(SLUICE_ERR_ARGUMENT, "segment of %zu bytes: too large", bytes);
    sluice_status status = make_current(device);
    if (status) return status;
    cudaError_t error = cudaMalloc(&base, rounded ? rounded : page);
    if (error == cudaErrorMemoryAllocation) return refuse_segment(device->state, rounded);
    if (error) return slc_cuda_status(error, "cudaMalloc");

    status = device->ops->stream_create(&stream);
    if (status) goto free_memory;
    status = device->ops->fill_zero(&stream, base, rounded ? rounded : page);
    if (!status) status = device->ops->stream_synchronize(&stream);
    device->ops->stream_destroy(&stream);
    if (status) goto free_memory;
    *out = (slc_segment){.base = base, .bytes = rounded ? rounded : page, .fd = -1, .device = device};
    return SLUICE_OK;

free_memory:
    cudaFree(base);
    return status;
}

static sluice_status cuda_segment_map(slc_device *device, int fd, size_t bytes, slc_segment *out)
{
    (void)device, (void)fd, (void)bytes, (void)out;
    return slc_error(SLUICE_ERR_UNSUPPORTED, "device \"cuda\": memory of a GPU is not mapped by other processes");
}

static void cuda_segment_destroy(slc_segment *segment)
{
    if (!segment->kept && !make_current(segment->device)) cudaFree(segment->base);
}

static sluice_status cuda_segment_populate(slc_segment *segment, size_t offset, size_t bytes)
{
    (void)segment, (void)offset, (void)bytes; /* cudaMalloc has done it */
    return SLUICE_OK;
}

static void cuda_segment_discard(slc_segment *segment, size_t offset, size_t bytes)
{
    (void)segment, (void)offset, (void)bytes;
}

static sluice_status cuda_pinned_create(slc_device *device, size_t bytes, void **base)
{
    sluice_status status = make_current(device);
    if (status) return status;
    return slc_cuda_status(cudaHostAlloc(base, bytes ? bytes : 1, cudaHostAllocDefault), "pinned memory");
}

static void cuda_pinned_destroy(slc_device *device, void *base)
{
    if (!make_current(device)) cudaFreeHost(base);
}

/* ---- Streams ---- */

cudaStream_t slc_cuda_stream(const sluice_stream *stream)
{
    (void)make_current(stream->device); /* if it fails, so does what comes next */
    return ((const gpu_stream *)stream->handle)->stream;
}

static sluice_status cuda_stream_create(sluice_stream *stream)
{
    gpu_stream *s = calloc(1, sizeof *s);
    if (!s) return slc_error(SLUICE_ERR_MEMORY, "stream");
    int least = 0, greatest = 0; /* the greatest priority is the smallest number */
    sluice_status status = make_current(stream->device);
    if (!status && stream->first)
        status = slc_cuda_status(cudaDeviceGetStreamPriorityRange(&least, &greatest), "priorities of streams");
    if (!status)
        status = slc_cuda_status(cudaStreamCreateWithPriority(&s->stream, cudaStreamNonBlocking, greatest),
                                 "cudaStreamCreate");
    if (status) {
        free(s);
        return status;
    }
    stream->handle = s;
    return SLUICE_OK;
}

static void cuda_stream_destroy(sluice_stream *stream)
{
    gpu_stream *s = stream->handle;
    cudaStream_t handle = slc_cuda_stream(stream);
    cudaStreamDestroy(handle);
    slc_pinned_destroy(&s->room);
    free(s);
}

static sluice_status cuda_stream_synchronize(sluice_stream *stream)
{
    return slc_cuda_status(cudaStreamSynchronize(slc_cuda_stream(stream)), "waiting for a stream");
}

static void *cuda_stream_native(const sluice_stream *stream)
{
    return slc_cuda_stream(stream);
}

/* ---- Launches ---- */

void slc_cuda_note_grid(const slc_cuda_grid *grid)
{
    if (grid_count < MOST_GRIDS) grids[grid_count++] = *grid;
}

/* Adds to `launch` what the compiler made of a kernel. Nobody has compiled an emulated one for a GPU. */
static void add_compiled(const gpu *g, const slc_cuda_grid *grid, slc_kernel_launch *launch)
{
    struct cudaFuncAttributes attributes;
    int blocks;
    cudaError_t error = cudaFuncGetAttributes(&attributes, grid->kernel);
    if (!error)
        error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, grid->kernel, (int)grid->threads,
                                                              grid->shared_bytes);
    if (error) {
        cudaGetLastError();
        return;
    }
    launch->compiled = true;
    launch->registers = (uint32_t)attributes.numRegs;
    launch->local_bytes = attributes.localSizeBytes;
    launch->shared_bytes += attributes.sharedSizeBytes;
    launch->occupancy = (double)blocks * grid->threads / g->processor_threads;
}

/* Copies, fills and a library's kernels have no grid. */
static void tell_launches(const gpu *g, const char *kernel)
{
    if (!grid_count) g->told(g->watcher, &(slc_kernel_launch){.kernel = kernel});
    for (uint32_t i = 0; i < grid_count; i++) {
        slc_kernel_launch launch = {.kernel = kernel,
                                    .known = true,
                                    .function = grids[i].kernel,
                                    .blocks = grids[i].blocks,
                                    .threads = grids[i].threads,
                                    .shared_bytes = grids[i].shared_bytes};
        add_compiled(g, &grids[i], &launch);
        g->told(g->watcher, &launch);
    }
}

static void cuda_watch_launches(slc_device *device, slc_launch_watch *told, void *context)
{
    gpu *g = device->state;
    g->told = told;
    g->watcher = context;
}

sluice_status slc_cuda_launched(const sluice_stream *stream, const char *kernel)
{
    const gpu *g = stream->device->state;
    cudaError_t error = cudaGetLastError();
    if (!error && g->told) tell_launches(g, kernel);
    grid_count = 0;
    if (!error && g->checks) error = cudaStreamSynchronize(((const gpu_stream *)stream->handle)->stream);
    if (!error) return SLUICE_OK;
    return slc_error(SLUICE_ERR_SYSTEM, "device \"cuda\": kernel %s: %s", kernel, cudaGetErrorString(error));
}

static sluice_status cuda_copy(sluice_stream *stream, void *dst, const void *src, size_t bytes)
{
    sluice_status status =
        slc_cuda_status(cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDefault, slc_cuda_stream(stream)), "a copy");
    return status ? status : slc_cuda_launched(stream, "copy");
}

/* Moves by less than MOVE_BYTES go through a buffer aside, so that there are few copies however small the distance is.
 * The buffer is the host's memory, because the device's belongs to the budget. */
static sluice_status move_piece(sluice_stream *stream, unsigned char *dst, const unsigned char *src, size_t bytes,
                                bool aside)
{
    gpu_stream *s = stream->handle;
    if (!aside) return cuda_copy(stream, dst, src, bytes);
    sluice_status status = SLUICE_OK;
    if (!s->room.base) status = slc_pinned_create(stream->device, MOVE_BYTES, &s->room);
    if (!status) status = cuda_copy(stream, s->room.base, src, bytes);
    if (!status) status = cuda_copy(stream, dst, s->room.base, bytes);
    return status;
}

/* Copies pieces whose ends do not overlap, from the end to which the bytes go, so that none is overwritten before it is
 * read. */
static sluice_status cuda_move(sluice_stream *stream, void *dst, const void *src, size_t bytes)
{
    const uintptr_t to = (uintptr_t)dst, from = (uintptr_t)src;
    const size_t step = to < from ? from - to : to - from;
    const bool aside = step < MOVE_BYTES && step < bytes;
    const size_t piece = aside ? MOVE_BYTES : step < bytes ? step : bytes;
    sluice_status status = make_current(stream->device);
    for (size_t done = 0; done < bytes && !status; done += piece) {
        const size_t some = bytes - done < piece ? bytes - done : piece, at = to < from ? done : bytes - done - some;
        status = move_piece(stream, (unsigned char *)dst + at, (const unsigned char *)src + at, some, aside);
    }
    return status;
}

static sluice_status cuda_fill_zero(sluice_stream *stream, void *dst, size_t bytes)
{
    sluice_status status = slc_cuda_status(cudaMemsetAsync(dst, 0, bytes, slc_cuda_stream(stream)), "a fill");
    return status ? status : slc_cuda_launched(stream, "fill");
}

/* ---- Events ---- */

static sluice_status cuda_event_create(slc_device *device, slc_event *event)
{
    gpu_event *e = calloc(1, sizeof *e);
    if (!e) return slc_error(SLUICE_ERR_MEMORY, "event");
    e->header.device = device;
    sluice_status status = make_current(device);
    if (!status) status = slc_cuda_status(cudaEventCreateWithFlags(&e->event, cudaEventDefault), "cudaEventCreate");
    if (status) {
        free(e);
        return status;
    }
    event->handle = e;
    return SLUICE_OK;
}

static void cuda_event_destroy(slc_event *event)
{
    gpu_event *e = event->handle;
    if (!make_current(e->header.device)) cudaEventDestroy(e->event);
    free(e);
}

static sluice_status cuda_event_record(sluice_stream *stream, slc_event *event)
{
    sluice_status status = event->handle ? SLUICE_OK : cuda_event_create(stream->device, event);
    if (status) return status;
    const gpu_event *e = event->handle;
    return slc_cuda_status(cudaEventRecord(e->event, slc_cuda_stream(stream)), "recording an event");
}

/* An event is not done after an error: the call that then waits for it returns the error. */
static bool cuda_event_done(const slc_event *event)
{
    cudaError_t error = cudaEventQuery(((const gpu_event *)event->handle)->event);
    if (error == cudaErrorNotReady) cudaGetLastError(); /* it is no failure, and must not be taken for a launch's */
    return !error;
}

static sluice_status cuda_event_synchronize(slc_event *event)
{
    return slc_cuda_status(cudaEventSynchronize(((const gpu_event *)event->handle)->event), "waiting for an event");
}

static sluice_status cuda_stream_wait_event(sluice_stream *stream, const slc_event *event)
{
    const gpu_event *e = event->handle;
    return slc_cuda_status(cudaStreamWaitEvent(slc_cuda_stream(stream), e->event, 0), "a stream's wait for an event");
}

static sluice_status cuda_event_elapsed(const slc_event *begin, const slc_event *end, double *seconds)
{
    const gpu_event *from = begin->handle, *to = end->handle;
    float milliseconds;
    cudaError_t error = cudaEventElapsedTime(&milliseconds, from->event, to->event);
    if (error == cudaErrorNotReady) {
        cudaGetLastError(); /* as above */
        return slc_error(SLUICE_ERR_ORDER, "time between two events that are not both done");
    }
    if (!error) *seconds = 1e-3 * (double)milliseconds;
    return slc_cuda_status(error, "time between two events");
}

const slc_device_ops slc_cuda_ops = {
    .kind = SLC_DEVICE_CUDA,
    .name = "cuda",
#if defined(EMULATED_CUDA)
    .runs_on = "cuda (emulated)",
#else
    .runs_on = "cuda",
#endif
    .open = cuda_open,
    .close = cuda_close,
    .get_facts = cuda_get_facts,
    .watch_launches = cuda_watch_launches,
    .segment_create = cuda_segment_create,
    .segment_map = cuda_segment_map,
    .segment_destroy = cuda_segment_destroy,
    .segment_populate = cuda_segment_populate,
    .segment_discard = cuda_segment_discard,
    .pinned_create = cuda_pinned_create,
    .pinned_destroy = cuda_pinned_destroy,
    .stream_create = cuda_stream_create,
    .stream_destroy = cuda_stream_destroy,
    .stream_synchronize = cuda_stream_synchronize,
    .stream_native = cuda_stream_native,
    .copy = cuda_copy,
    .move = cuda_move,
    .fill_zero = cuda_fill_zero,
    .event_create = cuda_event_create,
    .event_destroy = cuda_event_destroy,
    .event_record = cuda_event_record,
    .event_done = cuda_event_done,
    .event_synchronize = cuda_event_synchronize,
    .stream_wait_event = cuda_stream_wait_event,
    .event_elapsed = cuda_event_elapsed,
};
