/* Devices, and memory of the device and pinned memory of the host: NaN when it is fresh, between two pages that no one
 * may touch, and exact to the byte for the address sanitizer. */
#include "tests/cuda_emulated/runtime.h"

#include <map>
#include <stdio.h>
#include <sys/mman.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(at, bytes) ((void)(at), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(at, bytes) ((void)(at), (void)(bytes))
#endif

enum { PAGE = 4096 };

namespace {
struct allocation {
    size_t bytes, pages; /* pages: their bytes */
    bool device;
};
typedef std::map<const char *, allocation> allocations;
} // namespace

static emulated_lock lock;
static size_t device_bytes;
static int running; /* operations that may touch device memory */
static allocations &all()
{
    static allocations *list = new allocations;
    return *list;
}

static bool guarded()
{
    static const bool guard = emulated_option("SLUICE_EMULATED_GUARD", 0) != 0;
    return guard;
}

static void protect(const char *at, const allocation &a, bool open)
{
    if (a.device) mprotect((void *)at, a.pages, open ? PROT_READ | PROT_WRITE : PROT_NONE);
}

void emulated_reach(bool open)
{
    if (!guarded()) return;
    lock.lock();
    const int before = open ? running++ : running--;
    if (before == (open ? 0 : 1))
        for (auto &a : all()) protect(a.first, a.second, open);
    lock.unlock();
}

/* Whether all of [at, at + bytes) lies in one allocation of the device, or in one of pinned memory. */
static bool inside(const void *at, size_t bytes, bool device)
{
    lock.lock();
    auto a = all().upper_bound((const char *)at);
    bool found = a != all().begin();
    if (found) {
        a--;
        found = a->second.device == device && (const char *)at + bytes <= a->first + a->second.bytes;
    }
    lock.unlock();
    return found;
}

bool emulated_device_memory(const void *at, size_t bytes)
{
    return inside(at, bytes, true);
}

static size_t memory_bytes()
{
    return emulated_option("SLUICE_EMULATED_MEMORY", 1 << 30);
}

/* A test may take memory away from a GPU of which more is in use. */
static size_t bytes_left()
{
    const size_t all = memory_bytes(), used = device_bytes;
    return used < all ? all - used : 0;
}

static cudaError_t allocate(void **out, size_t bytes, bool device)
{
    if (emulated_sticky()) return emulated_sticky();
    emulated_allocations++;
    *out = NULL;
    if (!bytes) return cudaSuccess;
    const size_t pages = (bytes + PAGE - 1) / PAGE * PAGE;
    if (device && (pages < bytes || pages > bytes_left())) return emulated_error(cudaErrorMemoryAllocation);
    char *base = (char *)mmap(NULL, pages + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED) return emulated_error(cudaErrorMemoryAllocation);
    char *at = base + PAGE;
    mprotect(at, pages, PROT_READ | PROT_WRITE);
    memset(at, 0xff, pages);
    ASAN_POISON_MEMORY_REGION(at + bytes, pages - bytes);
    const allocation a = {bytes, pages, device};
    lock.lock();
    all()[at] = a;
    if (device) device_bytes += pages;
    if (guarded() && !running) protect(at, a, false);
    lock.unlock();
    *out = at;
    return cudaSuccess;
}

static cudaError_t release(void *at, bool device)
{
    if (!at) return emulated_sticky();
    emulated_allocations++;
    emulated_waits++;
    emulated_wait_for_all_streams();
    lock.lock();
    auto a = all().find((const char *)at);
    if (a == all().end() || a->second.device != device) emulated_stop("memory is freed that was not allocated so");
    const size_t pages = a->second.pages;
    all().erase(a);
    if (device) device_bytes -= pages;
    lock.unlock();
    ASAN_UNPOISON_MEMORY_REGION(at, pages);
    munmap((char *)at - PAGE, pages + 2 * PAGE);
    return emulated_sticky();
}

cudaError_t cudaMalloc(void **out, size_t bytes)
{
    return allocate(out, bytes, true);
}

cudaError_t cudaFree(void *at)
{
    return release(at, true);
}

cudaError_t cudaHostAlloc(void **out, size_t bytes, unsigned)
{
    return allocate(out, bytes, false);
}

cudaError_t cudaFreeHost(void *at)
{
    return release(at, false);
}

/* ---- Copies ---- */

/* Whether it is device memory; stops unless it is that or pinned. */
static bool on_device(const void *at, size_t bytes, const char *what)
{
    if (inside(at, bytes, true)) return true;
    if (inside(at, bytes, false)) return false;
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

/* ---- Devices ---- */

cudaError_t cudaGetDeviceCount(int *count)
{
    *count = (int)emulated_option("SLUICE_EMULATED_DEVICES", 1);
    return *count ? cudaSuccess : cudaErrorNoDevice;
}

cudaError_t cudaSetDevice(int device)
{
    int count;
    cudaError_t error = cudaGetDeviceCount(&count);
    if (error) return emulated_error(error);
    return device < 0 || device >= count ? emulated_error(cudaErrorInvalidDevice) : emulated_sticky();
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int)
{
    const int capability = (int)emulated_option("SLUICE_EMULATED_CAPABILITY", 90);
    memset(properties, 0, sizeof *properties);
    snprintf(properties->name, sizeof properties->name, "emulated");
    properties->totalGlobalMem = memory_bytes();
    properties->major = capability / 10, properties->minor = capability % 10;
    properties->multiProcessorCount = 4;
    properties->maxThreadsPerMultiProcessor = 2048;
    return emulated_sticky();
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total)
{
    lock.lock();
    *total = memory_bytes(), *free_bytes = bytes_left();
    lock.unlock();
    return emulated_sticky();
}
