/* The emulation for this project's kernels has this beyond streams and memory: launches of its kernels, its limits, and
 * its rules, by which a program that does what this project never does is stopped. */
#include "tests/cuda_emulated/limits.h"
#include "tests/cuda_emulated/streams.h"

#include <map>
#include <stdio.h>
#include <string>

#include <cuda_runtime.h>

/* ---- Rules ---- */

const struct emulated_rules emulated_rules = {
    "SLUICE_EMULATED_DEVICES", "SLUICE_EMULATED_MEMORY", "SLUICE_EMULATED_GUARD", 1, 1 << 30, true, 227 << 10};

void emulated_forbidden(const char *why)
{
    emulated_stop(why);
}

cudaError_t emulated_unsafe_call()
{
    return cudaSuccess;
}

void emulated_stream_ends()
{
    emulated_end_fibers();
}

cudaError_t cudaStreamIsCapturing(cudaStream_t, enum cudaStreamCaptureStatus *status)
{
    *status = cudaStreamCaptureStatusNone;
    return emulated_sticky();
}

cudaError_t cudaGetDevice(int *device)
{
    *device = emulated_device();
    return emulated_sticky();
}

cudaError_t cudaDriverGetVersion(int *version)
{
    *version = (int)emulated_option("SLUICE_EMULATED_DRIVER", 13000);
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int)
{
    const int capability = (int)emulated_option("SLUICE_EMULATED_CAPABILITY", 90);
    memset(properties, 0, sizeof *properties);
    snprintf(properties->name, sizeof properties->name, "emulated");
    properties->totalGlobalMem = emulated_memory();
    properties->major = capability / 10, properties->minor = capability % 10;
    properties->multiProcessorCount = 4;
    properties->maxThreadsPerMultiProcessor = 2048;
    return emulated_sticky();
}

const char *cudaGetErrorString(cudaError_t error)
{
    switch (error) {
    case cudaSuccess: return "no error";
    case cudaErrorInvalidValue: return "invalid argument";
    case cudaErrorMemoryAllocation: return "out of memory";
    case cudaErrorInvalidConfiguration: return "invalid configuration argument";
    case cudaErrorInsufficientDriver: return "CUDA driver version is insufficient for CUDA runtime version";
    case cudaErrorNoDevice: return "no CUDA-capable device is detected";
    case cudaErrorInvalidDevice: return "invalid device ordinal";
    case cudaErrorInvalidResourceHandle: return "invalid resource handle";
    case cudaErrorNotReady: return "device not ready";
    case cudaErrorIllegalAddress: return "an illegal memory access was encountered";
    case cudaErrorLaunchFailure: return "unspecified launch failure";
    case cudaErrorNotSupported: return "operation not supported";
    }
    return "unrecognized error code";
}

/* ---- Copies ---- */

/* True if the bytes are one piece of device memory, false if they are pinned; any other memory stops the program. */
static bool on_device(const void *at, size_t bytes, const char *what)
{
    const emulated_kind kind = emulated_find(at, bytes, NULL, NULL);
    if (kind) return kind == EMULATED_DEVICE;
    char why[128];
    snprintf(why, sizeof why, "%s %zu bytes that are neither one piece of device memory nor pinned", what, bytes);
    emulated_stop(why);
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t s)
{
    if (!bytes) return emulated_sticky();
    const bool to_device = on_device(to, bytes, "a copy to"), from_device = on_device(from, bytes, "a copy from");
    if (kind != cudaMemcpyDefault && kind != (to_device ? 1u : 0u) + (from_device ? 2u : 0u))
        return emulated_error(cudaErrorInvalidValue);
    if ((const char *)to < (const char *)from + bytes && (const char *)from < (const char *)to + bytes)
        emulated_stop("a copy whose ends overlap");
    emulated_copies++;
    return emulated_enqueue(s, true, [=] { emulated_copy_bytes(to, from, bytes); });
}

cudaError_t cudaMemsetAsync(void *at, int value, size_t bytes, cudaStream_t s)
{
    if (!bytes) return emulated_sticky();
    on_device(at, bytes, "a fill of");
    return emulated_enqueue(s, true, [=] { emulated_set_bytes(at, value, bytes); });
}

/* ---- Launches ---- */

cudaError_t cudaFuncSetAttribute(const void *kernel, enum cudaFuncAttribute, int value)
{
    return emulated_ask_shared((uint64_t)(uintptr_t)kernel, value);
}

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *, const void *)
{
    return emulated_error(cudaErrorNotSupported);
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *, const void *, int, size_t)
{
    return emulated_error(cudaErrorNotSupported);
}

static emulated_lock counts_lock;
/* Counts are found by the address of a kernel's name, which stays: the thread sanitizer would see texts compared, but
 * not the lock. */
static std::map<const char *, uint64_t> &kernel_counts()
{
    static std::map<const char *, uint64_t> *counts = new std::map<const char *, uint64_t>;
    return *counts;
}

static void count_kernel(const char *name)
{
    counts_lock.lock();
    kernel_counts()[name]++;
    counts_lock.unlock();
}

uint64_t emulated_count_kernel(const char *part)
{
    uint64_t count = 0;
    counts_lock.lock();
    for (auto &kernel : kernel_counts())
        if (strstr(kernel.first, part)) count += kernel.second;
    counts_lock.unlock();
    return count;
}

cudaError_t emulated_enqueue_grid(cudaStream_t stream, const emulated_grid *grid, const void *arguments, size_t bytes)
{
    const emulated_grid launch = *grid;
    const uint64_t kernel = (uint64_t)(uintptr_t)launch.kernel;
    const dim3 t = launch.threads, g = launch.grid;
    if (cudaError_t error = emulated_check_launch(kernel, {g.x, g.y, g.z}, {t.x, t.y, t.z}, launch.shared))
        return error;
    emulated_launches++;
    count_kernel(launch.name);
    emulated_load(stream, kernel, launch.name);
    std::shared_ptr<void> kept(aligned_alloc(64, (bytes + 63) / 64 * 64), emulated_free);
    memcpy(kept.get(), arguments, bytes);
    return emulated_enqueue(stream, true, [=] { emulated_run_grid(&launch, kept.get()); });
}

emulated_counts emulated_count(void)
{
    return {emulated_allocations, emulated_waits,       emulated_launches,
            emulated_copies,      emulated_collectives, emulated_calls};
}
